"""Numbers of parts, and the best placed of several."""

from __future__ import annotations

import pytest
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.decomposition.graph import Edge, Graph, IndivisibleError, Limits, Parts, Vertex
from ces_core.decomposition.levels import MOST_PARTS, Granularity, best_placed, parts_at, pure_levels


def test_how_many_parts_each_granularity_is() -> None:
    assert [parts_at(each, 100) for each in (Granularity.coarse, Granularity.medium, Granularity.fine)] == [5, 10, 22]
    assert parts_at(Granularity.fine, 5000) == MOST_PARTS
    assert parts_at(Granularity.coarse, 100, least=7) == 7
    assert parts_at(Granularity.coarse, 1) == 1


@settings(max_examples=8, deadline=None)
@given(size=st.integers(4, 14), seed=st.integers(0, 999), most=st.integers(4, 14))
def test_every_part_of_every_level_is_of_one_kind(size: int, seed: int, most: int) -> None:
    graph = random_graph(size, seed, archs=2)
    kinds = {(each.arch, each.work_class) for each in graph.vertices}
    try:
        levels = pure_levels(graph, lambda parts: Limits(), most)
    except IndivisibleError:
        assert len(kinds) > min(most, size)
        return
    assert len(levels[0].members) == min(most, size)
    assert len(levels[-1].members) >= len(kinds)
    counts = [len(level.members) for level in levels]
    assert counts == sorted(set(counts), reverse=True)
    for level in levels:
        for members in level.members:
            assert len({(graph.vertices[v].arch, graph.vertices[v].work_class) for v in members}) == 1


def test_more_parts_than_a_job_has_are_refused() -> None:
    with pytest.raises(IndivisibleError, match="takes 65 parts at least, and a job has 64 at most"):
        parts_at(Granularity.fine, 100, least=MOST_PARTS + 1)
    assert parts_at(Granularity.fine, 100, least=MOST_PARTS) == MOST_PARTS


def test_the_top_of_the_hierarchy_is_a_level_of_its_own() -> None:
    """Six kinds: halving 11 gives 5, which is too few, and 6 is there."""
    vertices = tuple(Vertex(f"v{i}", 100.0, work_class=f"kind{i % 6}") for i in range(12))
    levels = pure_levels(Graph("kinds", vertices, ()), lambda parts: Limits(), 11)
    assert [len(level.members) for level in levels] == [11, 6]


def test_what_merging_does_not_reach_is_packed() -> None:
    """Merging joins each large vertex with a small one and is left with three parts; two hold all."""
    vertices = tuple(Vertex(f"v{i}", cpu) for i, cpu in enumerate((3.0, 3.0, 2.0, 2.0, 2.0)))
    graph = Graph("two", vertices, (Edge(0, 2, 1, 100), Edge(1, 3, 1, 100)))
    (level, *_) = pure_levels(graph, lambda parts: Limits(cpu=6.0), 2)
    assert sorted(level.amount(part, "cpu") for part in range(2)) == [6, 6]


def test_too_few_parts_for_the_kinds_that_there_are() -> None:
    graph = random_graph(10, 1, archs=2)
    with pytest.raises(IndivisibleError, match="it takes"):
        pure_levels(graph, lambda parts: Limits(), 1)


def test_the_best_placed_level_comes_first() -> None:
    levels = pure_levels(line([1.0] * 7), lambda parts: Limits(), 8)
    assert [len(level.members) for level in levels] == [8, 4, 2, 1]
    scores = {8: None, 4: 0.7, 2: 0.9, 1: 0.9}

    def place(parts: Parts) -> float | None:
        return scores[len(parts.members)]

    ranked = best_placed(levels, place)
    assert [len(level.parts.members) for level in ranked] == [1, 2, 4, 8]
    assert [level.placed for level in ranked] == [0.9, 0.9, 0.7, None]
