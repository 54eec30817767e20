"""Which format a file is in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ces_client.errors import BadInput
from ces_client.graphs.reader import LARGEST_YAML, read_graph

EXAMPLES = Path(__file__).parents[4] / "examples" / "graphs"


@pytest.mark.parametrize(
    ("name", "vertices", "edges"), [("cameras.yaml", 11, 14), ("land-cover.json", 15, 19), ("shop.json", 15, 28)]
)
def test_the_examples_are_read(name: str, vertices: int, edges: int) -> None:
    graph = read_graph(EXAMPLES / name, 1.0)
    assert (len(graph.vertices), len(graph.edges)) == (vertices, edges)
    assert any(vertex.near for vertex in graph.vertices)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.yaml", "nodes: []", "none of the formats"),
        ("a.yaml", "- 1", "a list, not fields"),
        ("a.yaml", "graph: {name: [", "line 1, column 16"),
        ("a.json", "{", "line 1, column 2"),
        ("a.json", '{"workflow": 5}', "must hold fields"),
        ("a.json", json.dumps({"graph": {"name": "a", "vertices": [{"name": "a,b"}]}}), "no comma"),
        ("a.json", json.dumps({"graph": {"name": "a", "vertices": [{"name": "a\nb"}]}}), "no control character"),
        (
            "a.json",
            json.dumps({"graph": {"name": "a", "vertices": [{"name": "a", "cpu": "-1"}]}}),
            "graph.vertices[0].cpu",
        ),
        ("a.json", '{"workflow": {"tasks": []}, "schemaVersion": "1.4"}', "WfFormat 1.4"),
        ("a.json", '{"a": {"external_services": [{"services": ["b"]}]}}', "no service is named 'b'"),
        ("a.json", json.dumps({"graph": {"name": "a", "vertices": [{"name": "v", "cpus": 1}]}}), "cpus"),
        ("a.yaml", "#" * (LARGEST_YAML + 1), "larger than 1 MiB"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, name: str, text: str, problem: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadInput) as told:
        read_graph(path, 1.0)
    assert problem in str(told.value.problem.errors)
    assert all(each["remedy"] for each in told.value.problem.errors)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_graph(tmp_path / "none.yaml", 1.0)


def test_services_may_be_called_as_other_formats_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    services = {"graph": {"external_services": [{"services": ["workflow"]}]}, "workflow": {"external_services": []}}
    path.write_text(json.dumps(services))
    assert [each.name for each in read_graph(path, 1.0).vertices] == ["graph", "workflow"]


def test_calls_that_multiply_beyond_all_bounds_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    chain = {f"s{i}": {"external_services": [{"services": [f"s{i + 1}"]}] * 1000} for i in range(120)}
    path.write_text(json.dumps(chain | {"s120": {"external_services": []}}))
    with pytest.raises(BadInput) as told:
        read_graph(path, 1.0)
    assert "1e+09 are the most" in str(told.value.problem.errors)
