"""A network as an ONNX file, with what inference looks at before it asks it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch

from ces_core.learned.policy import CARD_KEY, SCHEMA_KEY, VERSION_KEY

OPSET = 17


def export_network(
    network: torch.nn.Module,
    example: tuple[torch.Tensor, ...],
    path: Path,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    axes: Mapping[str, Mapping[int, str]],
    schema: str,
    version: str,
    card: Mapping[str, Any],
) -> None:
    """Writes ``network`` to ``path``, whole or not at all. ``axes``: input or output -> axis of any length -> its name.
    ``schema``: hash of the features that the network was trained to see."""
    part = path.with_suffix(".part")
    with warnings.catch_warnings():
        # The newer exporter needs further packages, and makes larger graphs of a network this plain.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            network.eval(),
            example,
            str(part),
            dynamo=False,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=OPSET,
        )
    model = onnx.load(str(part))
    properties = {SCHEMA_KEY: schema, VERSION_KEY: version, CARD_KEY: json.dumps(card, sort_keys=True)}
    onnx.helper.set_model_props(model, properties)
    onnx.checker.check_model(model)
    onnx.save(model, str(part))
    part.replace(path)
