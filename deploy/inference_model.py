"""Makes the small ONNX file by which agents measure inference: three convolutions and a linear layer on an image of
64 x 64. Its weights are constants that the runtime fills in as it loads the file, so that it has a kilobyte; the time
that it takes does not depend on them. Needs ``onnx``: ``python deploy/inference_model.py``."""

from __future__ import annotations

import itertools
from pathlib import Path

import onnx
from onnx import TensorProto, helper

FILE = Path(__file__).parents[1] / "services/edge-agent/src/ces_edge_agent/scores/inference.onnx"
CHANNELS = (3, 16, 32, 64)
CLASSES = 10


def model() -> onnx.ModelProto:
    nodes, shapes, flowing = [], [], "image"
    for layer, (taken, given) in enumerate(itertools.pairwise(CHANNELS)):
        weights = _constant(f"weights{layer}", (given, taken, 3, 3), shapes, nodes)
        attributes = {"strides": [2, 2], "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
        nodes.append(helper.make_node("Conv", [flowing, weights], [f"conv{layer}"], **attributes))
        nodes.append(helper.make_node("Relu", [f"conv{layer}"], [f"relu{layer}"]))
        flowing = f"relu{layer}"
    nodes.append(helper.make_node("GlobalAveragePool", [flowing], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    weights = _constant("weights", (CHANNELS[-1], CLASSES), shapes, nodes)
    nodes.append(helper.make_node("MatMul", ["flat", weights], ["classes"]))
    graph = helper.make_graph(
        nodes,
        "inference",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, CHANNELS[0], 64, 64])],
        [helper.make_tensor_value_info("classes", TensorProto.FLOAT, [1, CLASSES])],
        shapes,
    )
    # Old versions of both numbers: whatever runtime a device has reads it.
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6, producer_name="CES")
    onnx.checker.check_model(made)
    return made


def _constant(name: str, shape: tuple[int, ...], shapes: list[onnx.TensorProto], nodes: list[onnx.NodeProto]) -> str:
    shapes.append(helper.make_tensor(f"{name}-shape", TensorProto.INT64, [len(shape)], shape))
    value = helper.make_tensor(f"{name}-value", TensorProto.FLOAT, [1], [0.01])
    nodes.append(helper.make_node("ConstantOfShape", [f"{name}-shape"], [name], value=value))
    return name


if __name__ == "__main__":
    FILE.write_bytes(model().SerializeToString(deterministic=True))
