"""The graph file."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ces_common.graphfile import GraphFile


def document(**more: Any) -> dict[str, Any]:
    vertices = [{"name": "a", "cpu": "500m", "class": "matrix"}, {"name": "b", "near": True, "state": "1Mi"}]
    edges = [{"src": "a", "dst": "b", "bandwidth": {"min": "1Mbit", "max": "2Mbit"}}]
    return {"graph": {"name": "app", "vertices": vertices, "edges": edges} | more}


def test_quantities_are_read_as_in_a_job_file() -> None:
    graph = GraphFile.model_validate(document(capacity={"cpu": 2, "memory": "1Gi"})).graph
    assert (graph.vertices[0].cpu, graph.vertices[0].work_class) == (500, "matrix")
    assert (graph.vertices[1].near, graph.vertices[1].state) == (True, 2**20)
    assert (graph.edges[0].bandwidth.min, graph.edges[0].bandwidth.max) == (1_000_000, 2_000_000)
    assert (graph.capacity.cpu, graph.capacity.memory, graph.capacity.gpu) == (2000, 2**30, None)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"vertices": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, "'a' is used twice"),
        ({"vertices": [{"name": "a"}]}, "edges[0]: no vertex is named 'b'"),
        ({"vertices": []}, "at least 1 item"),
        ({"vertices": [{"name": "a", "cpu": 0}, {"name": "b"}]}, "must be more than zero"),
        ({"run": {"env": {"A": "b"}}}, "nothing to run"),
        ({"speed": 3}, "Extra inputs"),
    ],
)
def test_what_is_wrong_is_told(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as told:
        GraphFile.model_validate(document(**more))
    assert message in str(told.value)


@pytest.mark.parametrize(("src", "dst", "message"), [("a", "a", "two different"), ("a", "b", "a second edge")])
def test_edges_join_two_vertices_once(src: str, dst: str, message: str) -> None:
    told = document()
    told["graph"]["edges"].append({"src": src, "dst": dst, "bandwidth": {"min": 1, "max": 1}})
    with pytest.raises(ValidationError, match=message):
        GraphFile.model_validate(told)
