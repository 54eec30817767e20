"""Clusters by traffic."""

from __future__ import annotations

import numpy as np
import pytest
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import Edge, Graph, IndivisibleError, Limits, Vertex, division, even_limits


@settings(max_examples=8, deadline=None)
@given(size=st.integers(3, 14), seed=st.integers(0, 999), parts=st.integers(1, 4), archs=st.integers(0, 2))
def test_as_many_parts_as_asked_none_above_its_capacity(size: int, seed: int, parts: int, archs: int) -> None:
    parts = min(parts, size)
    graph = random_graph(size, seed, archs=archs)
    asked = division(graph, even_limits(graph, parts))
    try:
        found = clusters(asked, parts, seed=seed)
    except IndivisibleError:
        assert archs  # CPU alone can always be packed, if not always by these rules
        return
    assert asked.broken(found) == []
    assert int(found.max()) + 1 == parts


def test_cliques_stay_whole() -> None:
    """Three groups of four that all talk, joined by thin edges."""
    edges = [Edge(4 * g + a, 4 * g + b, 1, 50) for g in range(3) for a in range(4) for b in range(a)]
    edges += [Edge(3, 4, 1, 1), Edge(7, 8, 1, 1), Edge(11, 0, 1, 1)]
    graph = Graph("cliques", tuple(Vertex(f"v{i}", 100) for i in range(12)), tuple(edges))
    found = clusters(division(graph, Limits(cpu=400)), 3)
    assert [len(set(found[4 * g : 4 * g + 4].tolist())) for g in range(3)] == [1, 1, 1]


def test_the_same_seed_gives_the_same_parts() -> None:
    graph = random_graph(14, 5)
    asked = division(graph, even_limits(graph, 3))
    assert np.array_equal(clusters(asked, 3, seed=4), clusters(asked, 3, seed=4))


def test_what_cannot_be_packed_says_why() -> None:
    with pytest.raises(IndivisibleError, match="it takes 4 at least"):
        clusters(division(line([1.0] * 3), Limits(cpu=100)), 2)
    with pytest.raises(IndivisibleError, match="it takes 2 at least"):
        clusters(division(line([1.0] * 1), Limits(cpu=100)), 1)


def test_after_the_deadline_the_first_answer_counts() -> None:
    """As it is with all time, but for what moves and further starts would have gained."""
    graph = random_graph(60, 3)
    asked = division(graph, even_limits(graph, 5))
    found = clusters(asked, 5, deadline=0.0)
    assert asked.broken(found) == []
    assert int(found.max()) + 1 == 5
    assert asked.cut(clusters(asked, 5)) < asked.cut(found)
