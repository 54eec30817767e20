"""ONNX models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ces_client.errors import BadInput
from ces_client.graphs.onnx_model import FLOPS, read_onnx

onnx = pytest.importorskip("onnx", reason="an extra of ces-client: it reads ONNX files")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Two layers of 4 x 8 and 8 x 2 with a ReLU between, for a batch of unknown size."""
    helper, numpy_helper, kind = onnx.helper, onnx.numpy_helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2"], ["y"], name="second"),
    ]
    weights = [
        numpy_helper.from_array(np.zeros((4, 8), np.float32), "w1"),
        numpy_helper.from_array(np.zeros((8, 2), np.float32), "w2"),
    ]
    ends = [helper.make_tensor_value_info(name, kind, ["batch", size]) for name, size in (("x", 4), ("y", 2))]
    path = tmp_path / "Two layers.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)), str(path))
    return path


def test_nodes_work_and_pass_tensors_on(model: Path) -> None:
    rate = FLOPS / 64  # of the first layer's 2 x 4 x 8 operations a core does so many in a second
    graph = read_onnx(model, rate)
    assert graph.name == "two-layers"
    assert [(each.name, each.cpu, each.memory, each.near) for each in graph.vertices] == [
        ("first", 1000, 4 * 8 * 4 + 8 * 4, True),
        ("Relu.1", 125, 8 * 4, None),
        ("second", 500, 8 * 2 * 4 + 2 * 4, None),
    ]
    assert [(e.src, e.dst, e.bandwidth.min) for e in graph.edges] == [
        ("Relu.1", "second", round(rate * 256)),
        ("first", "Relu.1", round(rate * 256)),
    ]


def test_what_is_no_model_is_told(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"no model at all")
    with pytest.raises(BadInput, match="cannot be read"):
        read_onnx(path, 1.0)
    with pytest.raises(BadInput, match="cannot be read"):
        read_onnx(tmp_path / "none.onnx", 1.0)


def saved(path: Path, nodes: list[Any], **more: Any) -> Path:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    ends = [helper.make_tensor_value_info("x", kind, [1, 4])], [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph(nodes, "g", *ends, **more)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), str(path))
    return path


def test_names_are_made_different_and_fit_to_be_listed(tmp_path: Path) -> None:
    node = onnx.helper.make_node
    nodes = [
        node("Relu", ["x"], ["t"], name="Relu.1"),
        node("Relu", ["t"], ["u"]),
        node("Relu", ["u"], ["y"], name="a,b\0"),
    ]
    graph = read_onnx(saved(tmp_path / "a.onnx", nodes), 1.0)
    assert [each.name for each in graph.vertices] == ["Relu.1", "Relu.1_", "a_b_"]


def test_odd_models_are_read_or_refused_with_a_reason(tmp_path: Path) -> None:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    assert (
        len(read_onnx(saved(tmp_path / "a.onnx", [helper.make_node("Conv", ["x"], ["y"], name="a")]), 1).vertices) == 1
    )
    odd = onnx.TensorProto(name="w", data_type=1, dims=[-5, 3])
    own = [helper.make_node("Own", ["x", "w"], ["y"], name="a", domain="own")]
    assert len(read_onnx(saved(tmp_path / "b.onnx", own, initializer=[odd]), 1).vertices) == 1
    pair = [
        helper.make_node("Own", ["x"], ["t"], name="a", domain="own"),
        helper.make_node("Own", ["t"], ["y"], name="b", domain="own"),
    ]
    for shape in ([2**60], [2**60] * 20):
        told = [helper.make_tensor_value_info("t", kind, shape)]
        with pytest.raises(BadInput) as error:
            read_onnx(saved(tmp_path / "c.onnx", pair, value_info=told), 1e9)
        assert "too large" in str(error.value.problem.errors)
