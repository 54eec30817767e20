"""A trained policy as an ONNX file, for any number of decisions and nodes at once."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import onnx
import torch

from ces_core.policy.features import CONTEXT_WIDTH, NODE_WIDTH
from ces_core.policy.onnx import CARD_KEY, INPUTS, OUTPUT, SCHEMA_KEY, VERSION_KEY
from ces_core.policy.schema import schema_hash
from ces_train.network import PointerPolicy, Scores

OPSET = 17


def export(policy: PointerPolicy, path: Path, version: str, card: dict[str, Any]) -> None:
    """Writes ``policy`` with the hash of what it sees, its version and its training card."""
    example = torch.zeros(2, 3, NODE_WIDTH), torch.zeros(2, CONTEXT_WIDTH), torch.ones(2, 3)
    axes = {"nodes": {0: "batch", 1: "count"}, "context": {0: "batch"}, "mask": {0: "batch", 1: "count"}}
    part = path.with_suffix(".part")
    with warnings.catch_warnings():
        # The newer exporter needs further packages, and makes larger graphs of a network this plain.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            Scores(policy).eval(),
            example,
            str(part),
            dynamo=False,
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_axes=axes | {OUTPUT: {0: "batch", 1: "count"}},
            opset_version=OPSET,
        )
    with_properties(part, schema_hash(), version, card)
    part.replace(path)


def with_properties(file: Path, schema: str, version: str, card: dict[str, Any]) -> None:
    """Adds to an ONNX file what inference asks of it before it asks the policy."""
    model = onnx.load(str(file))
    properties = {SCHEMA_KEY: schema, VERSION_KEY: version, CARD_KEY: json.dumps(card, sort_keys=True)}
    onnx.helper.set_model_props(model, properties)
    onnx.checker.check_model(model)
    onnx.save(model, str(file))
