"""A trained policy from its ONNX file, asked through ONNX Runtime (the extra ``policy``)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_core.learned.features import CONTEXT_WIDTH, NODE_WIDTH
from ces_core.learned.schema import schema_hash
from ces_core.model.errors import PolicyError
from ces_core.model.problem import BoolArray

INPUTS = ("nodes", "context", "mask")
OUTPUT = "scores"
SCHEMA_KEY, VERSION_KEY, CARD_KEY = "ces.schema", "ces.version", "ces.card"
LARGEST = 16 << 20
"""Bytes; policies have some tens of thousands."""
LONGEST_VERSION = 100
"""Characters: every plan carries the version."""
SHIPPED = Path(__file__).with_name("default.onnx")
"""The policy that comes with the core."""

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Policy:
    """Scores nodes; the higher, the better. ``card``: how the policy was trained."""

    version: str
    card: dict[str, Any]
    session: Any

    def scores(self, nodes: NDArray[np.float32], context: NDArray[np.float32], mask: BoolArray) -> Scores:
        """(B, N) from nodes (B, N, features), context (B, features) and mask (B, N); -inf where the mask is False.

        Raises PolicyError for numbers that are not finite, in or out.
        """
        if not (np.isfinite(nodes).all() and np.isfinite(context).all()):
            raise PolicyError("a policy is asked with finite numbers only")
        inputs = dict(zip(INPUTS, (nodes, context, mask.astype(np.float32)), strict=True))
        found: Scores = self.session.run([OUTPUT], inputs)[0]
        if not np.isfinite(found).all():
            raise PolicyError(f"policy {self.version} answers with numbers that are not finite")
        if found.shape != mask.shape:
            raise PolicyError(f"policy {self.version} answers in the shape {found.shape}, not {mask.shape}")
        return np.where(mask, found, np.float32(-np.inf))


def opened(path: Path, schema: str) -> tuple[str, dict[str, Any], Any]:
    """Version, card and session of the policy in ``path``, which must have been trained for ``schema``. Raises
    PolicyError, saying what is wrong with the file and what to do."""
    # Else releases from 1.29 on tell their maker about each process and model, under a lasting id of the device.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError:
        raise PolicyError("learned solvers need onnxruntime: install ces-core[policy]") from None
    data = _read(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # a decision is too short to be shared out
    options.log_severity_level = 4  # what goes wrong is said below
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        keys = session.get_modelmeta().custom_metadata_map
    except Exception as error:  # the runtime has many kinds, with no common parent
        raise PolicyError(f"{path}: is no ONNX file, or not a whole one; export it again") from error
    if SCHEMA_KEY not in keys:
        raise PolicyError(f"{path}: is an ONNX file, but no policy of CES")
    if keys[SCHEMA_KEY] != schema:
        raise PolicyError(
            f"{path}: was trained to see other features ({keys[SCHEMA_KEY]}) than this version computes "
            f"({schema}); train it again, or use the version that it was trained with"
        )
    version = keys.get(VERSION_KEY, "")
    if not 0 < len(version) <= LONGEST_VERSION or not version.isprintable():
        raise PolicyError(f"{path}: has no version that could be kept with plans; export it again")
    return version, _card(keys.get(CARD_KEY, "{}")), session


def load_policy(path: Path) -> Policy:
    """The policy in ``path``. Raises PolicyError, saying what is wrong with the file and what to do."""
    policy = Policy(*opened(path, schema_hash()))
    try:
        policy.scores(
            np.zeros((1, 2, NODE_WIDTH), np.float32),
            np.zeros((1, CONTEXT_WIDTH), np.float32),
            np.ones((1, 2), np.bool_),
        )
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from error
    except Exception as error:
        raise PolicyError(f"{path}: does not take what a policy takes: {error}") from error
    return policy


def _read(path: Path) -> bytes:
    """The file's content, within the limit whatever its reported size."""
    try:
        if path.exists() and not path.is_file():
            raise PolicyError(f"{path}: is no file")  # and might never end
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}") from error
    if len(data) > LARGEST:
        raise PolicyError(f"{path}: is too large; a policy has at most {LARGEST} bytes")
    return data


def _card(text: str) -> dict[str, Any]:
    try:
        card = json.loads(text)
    except ValueError:
        return {}
    return card if isinstance(card, dict) else {}
