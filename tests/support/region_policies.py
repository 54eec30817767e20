"""Policies that choose a region by one number that is seen of it, written by hand."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from ces_federation.sight import JOB, REGION, schema_hash


def write_policy(
    path: Path,
    by: str = "free cpu",
    *,
    least: bool = False,
    schema: str | None = None,
    version: str = "by-hand-1",
    endless: bool = False,
) -> Path:
    """The region with the most of ``by`` is the best, or with the least. ``endless``: all scores are infinite."""
    scale = [float("inf") if endless else -1.0 if least else 1.0]
    nodes = [
        helper.make_node("Gather", ["regions", "column"], ["seen"], axis=2),
        helper.make_node("Mul", ["seen", "scale"], ["scores"]),
    ]
    inputs = {"regions": ["b", "r", len(REGION)], "job": ["b", len(JOB)], "allowed": ["b", "r"]}
    graph = helper.make_graph(
        nodes,
        "by-hand",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["b", "r"])],
        [
            helper.make_tensor("column", TensorProto.INT64, [], [REGION.index(by)]),
            helper.make_tensor("scale", TensorProto.FLOAT, [1], scale),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"ces.schema": schema or schema_hash(), "ces.version": version, "ces.card": "{}"})
    onnx.save(model, str(path))
    return path
