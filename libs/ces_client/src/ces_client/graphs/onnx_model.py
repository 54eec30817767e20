"""ONNX models: their nodes, what each computes, and the tensors between them."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ces_client.errors import BadInput, bad_field
from ces_client.files import explained
from ces_client.graphs.wfcommons import BURST, LEAST_RATE, job_name
from ces_common.graphfile import MAX_VERTICES, ApplicationGraph, vertex_name

FLOPS = 2e9
"""Operations in a second that a core is taken to do: an assumption, for devices are not asked."""
LARGEST_MODEL = 256 * 2**20  # bytes; larger ones keep their weights in files of their own, which are not read
MOST_ELEMENTS = 1e14  # of a tensor, as far as it is counted
_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}  # of an element, by type


def read_onnx(path: Path, rate: float) -> ApplicationGraph:
    """The graph of a model that is asked ``rate`` times in a second. Unknown sizes, such as of a batch, count as 1.
    Nodes that read the model's input are near the user. Raises BadInput."""
    title = f"{path} cannot be read"
    try:
        import onnx
    except ImportError as error:
        remedy = "pip install 'ces-client[decompose]'"
        raise bad_field(title, "file", "what reads ONNX files is not installed", remedy) from error
    try:
        if path.stat().st_size > LARGEST_MODEL:
            problem = f"it is larger than {LARGEST_MODEL // 2**20} MiB"
            raise bad_field(title, "file", problem, "keep the weights in a file of their own, and give the model's")
        model = onnx.load(str(path), load_external_data=False)
        graph = onnx.shape_inference.infer_shapes(model).graph
    except OSError as error:
        raise bad_field(title, "file", error.strerror or str(error), "check the path and its permissions") from error
    except Exception as error:  # protobuf's and ONNX's own, of many kinds
        raise bad_field(
            title, "file", f"it is no ONNX model: {error}", "give a model that onnx.checker accepts"
        ) from error
    try:
        return _graph(graph, job_name(path.stem), rate, title)
    except ValidationError as error:
        raise BadInput(title, explained(error, ApplicationGraph)) from error


def _graph(graph: Any, name: str, rate: float, title: str) -> ApplicationGraph:
    shapes: dict[str, tuple[list[int], int]] = {}  # of each tensor: its shape, and the bytes of an element
    for told in [*graph.input, *graph.value_info, *graph.output]:
        tensor = told.type.tensor_type
        shape = [dim.dim_value if dim.dim_value > 0 else 1 for dim in tensor.shape.dim]
        shapes[told.name] = shape, _BYTES.get(tensor.elem_type, 4)
    weights = {
        told.name: ([max(size, 1) for size in told.dims], _BYTES.get(told.data_type, 4)) for told in graph.initializer
    }
    for node in graph.node:
        if node.op_type == "Constant":
            weights |= {output: shapes.get(output, ([1], 4)) for output in node.output}
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    if not 0 < len(nodes) <= MAX_VERTICES:
        problem = f"it has {len(nodes)} nodes, and 1 to {MAX_VERTICES} are taken"
        raise bad_field(title, "file", problem, "give another model, or simplify this one")
    fed = {told.name for told in graph.input} - weights.keys()
    names = _names(nodes)
    maker = {output: names[i] for i, node in enumerate(nodes) for output in node.output if output}
    vertices: list[dict[str, Any]] = []
    sent: dict[tuple[str, str], float] = {}
    for own, node in zip(names, nodes, strict=True):
        held = sum(_size(weights[each]) for each in {*node.input} if each in weights)
        made = sum(_size(shapes[each]) for each in node.output if each in shapes)
        cpu = max(1, round(1000 * rate * _operations(node, shapes, weights) / FLOPS))
        vertex: dict[str, Any] = {"name": own, "cpu": f"{cpu}m", "memory": int(held + made)}
        vertices.append(vertex | ({"near": True} if fed & {*node.input} else {}))
        for tensor in {*node.input}:
            if (src := maker.get(tensor)) is not None and src != own:
                bits = 8 * _size(shapes.get(tensor, ([1], 4)))
                sent[src, own] = sent.get((src, own), 0.0) + bits
    edges = [
        {"src": src, "dst": dst, "bandwidth": {"min": mean, "max": BURST * mean}}
        for (src, dst), bits in sorted(sent.items())
        for mean in [max(LEAST_RATE, round(rate * bits))]
    ]
    return ApplicationGraph.model_validate({"name": name, "vertices": vertices, "edges": edges})


def _names(nodes: list[Any]) -> list[str]:
    """One for each node: many have none, and nothing keeps two from having the same."""
    found: dict[str, None] = {}
    for index, node in enumerate(nodes):
        name = vertex_name(node.name or node.op_type)[:200]
        if not node.name or name in found:
            name = f"{name}.{index}"
        while name in found:
            name += "_"
        found[name] = None
    return list(found)


def _size(tensor: tuple[list[int], int]) -> float:
    return _elements(tensor[0]) * tensor[1]


def _elements(shape: list[int]) -> float:
    """Of a tensor; more than any device holds are counted as so many."""
    return min(float(prod(map(float, shape))), MOST_ELEMENTS)


def _operations(node: Any, shapes: dict[str, Any], weights: dict[str, Any]) -> float:
    """Additions and multiplications: of products and convolutions as defined, of any other node one for each element
    that it makes."""
    made = sum(_elements(shapes[each][0]) for each in node.output if each in shapes)
    known = weights | shapes
    if node.op_type in ("MatMul", "Gemm") and len(node.input) > 0 and node.input[0] in known:
        shape = known[node.input[0]][0]
        turned = any(each.name == "transA" and each.i for each in node.attribute)
        return float(2 * made * (shape[0] if turned else shape[-1])) if shape else made
    if node.op_type == "Conv" and len(node.input) > 1 and node.input[1] in known:
        return float(2 * made * _elements(known[node.input[1]][0][1:]))
    return made
