"""Graphs, capacities, and what parts are said to be."""

from __future__ import annotations

import numpy as np
import pytest
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.decomposition.graph import Edge, Graph, IndivisibleError, Limits, Vertex, division, even_limits, parts_of


@settings(max_examples=20, deadline=None)
@given(size=st.integers(2, 14), seed=st.integers(0, 999), data=st.data())
def test_each_vertex_is_in_one_part_and_the_cut_is_the_sum_of_flows(size: int, seed: int, data: st.DataObject) -> None:
    graph = random_graph(size, seed)
    part = data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    parts = parts_of(graph, part)
    assert sorted(vertex for members in parts.members for vertex in members) == list(range(size))
    assert parts.cut == sum(edge.max for edge in graph.edges if part[edge.src] != part[edge.dst])
    least = sum(edge.min for edge in graph.edges if part[edge.src] != part[edge.dst])
    assert sum(flow.min for flow in parts.flows) == least
    assert parts.cut == division(graph, Limits()).cut(np.unique(part, return_inverse=True)[1])
    assert sum(parts.amount(i, "cpu") for i in range(len(parts.members))) == sum(each.cpu for each in graph.vertices)


@settings(max_examples=20, deadline=None)
@given(size=st.integers(2, 14), seed=st.integers(0, 999), data=st.data())
def test_a_merged_division_cuts_as_much_as_the_fine_one(size: int, seed: int, data: st.DataObject) -> None:
    fine = division(random_graph(size, seed), Limits())
    groups = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    group = np.unique(groups, return_inverse=True)[1]
    coarse = fine.merged(group)
    part = np.arange(coarse.size) % 2
    assert coarse.cut(part) == pytest.approx(fine.cut(part[group]))
    assert coarse.amounts.sum() == pytest.approx(fine.amounts.sum())


def test_flows_keep_their_direction() -> None:
    vertices = (Vertex("a", 1), Vertex("b", 1), Vertex("c", 1))
    graph = Graph("both", vertices, (Edge(0, 1, 1, 2), Edge(1, 0, 3, 4), Edge(0, 2, 5, 6), Edge(2, 1, 7, 8)))
    parts = parts_of(graph, [5, 5, 3])
    assert parts.members == ((0, 1), (2,))
    assert [(flow.src, flow.dst, flow.min, flow.max) for flow in parts.flows] == [(0, 1, 5, 6), (1, 0, 7, 8)]


def test_what_an_answer_breaks_is_told() -> None:
    graph = Graph("arch", (Vertex("a", 3, arch="arm64"), Vertex("b", 3, arch="amd64"), Vertex("c", 3)), ())
    asked = division(graph, Limits(cpu=6))
    assert asked.broken(np.array([0, 1, 1])) == []
    assert asked.broken(np.array([0, 0, 1])) == ["part 0 mixes vertices that must not share one"]
    assert asked.broken(np.array([0, 0, 0]))[0] == "part 0 is above its capacity"
    assert asked.broken(np.array([0, 2, 2])) == ["a part is empty", *asked.broken(np.array([0, 2, 2]))[1:]]


def test_a_vertex_that_no_part_can_hold_is_named() -> None:
    with pytest.raises(IndivisibleError, match="v0 alone asks for 100 millicores, and a part may for 50") as told:
        division(line([1.0]), Limits(cpu=50))
    assert told.value.field == "cpu"


def test_the_gap_is_the_share_that_is_not_proven() -> None:
    graph = line([10.0, 20.0])
    assert parts_of(graph, [0, 1, 1], bound=7.5).gap == 0.25
    assert parts_of(graph, [0, 1, 1], bound=10.0).gap == 0
    assert parts_of(graph, [0, 0, 0], bound=0.0).gap == 0
    assert parts_of(graph, [0, 1, 1]).gap is None


def test_even_parts_hold_a_share_and_the_rest_of_the_largest_vertex() -> None:
    assert even_limits(line([1.0] * 9, cpu=100.0), 5).cpu == pytest.approx(200 + 100 * 0.8)
