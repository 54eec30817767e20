"""The least cut, against every answer that there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import Division, IndivisibleError, Limits, division, even_limits
from ces_core.decomposition.optimal import LARGEST, optimal


def least_cut(asked: Division, parts: int) -> float:
    """By trying all."""
    cuts = [
        asked.cut(part)
        for each in product(range(parts), repeat=asked.size)
        if int((part := np.array(each)).max()) + 1 == parts and not asked.broken(part)
    ]
    return min(cuts)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 999), parts=st.integers(2, 3), archs=st.integers(0, 2))
def test_it_is_the_least_of_all_and_proven(seed: int, parts: int, archs: int) -> None:
    graph = random_graph(6, seed, archs=archs)
    asked = division(graph, even_limits(graph, parts))
    try:
        found = optimal(asked, parts, limit_s=60)
    except IndivisibleError:
        with pytest.raises(ValueError, match="empty"):
            least_cut(asked, parts)
        return
    assert asked.broken(found.part) == []
    assert asked.cut(found.part) == pytest.approx(least_cut(asked, parts))
    assert found.bound == pytest.approx(asked.cut(found.part))
    assert asked.cut(found.part) <= asked.cut(clusters(asked, parts)) + 1e-9


def test_without_time_the_bound_is_still_true() -> None:
    graph = random_graph(14, 1)
    asked = division(graph, even_limits(graph, 4))
    found = optimal(asked, 4, limit_s=0.01)
    assert asked.broken(found.part) == []
    assert 0 <= found.bound <= asked.cut(found.part)


def test_one_part_and_one_for_each_vertex_need_no_search() -> None:
    asked = division(line([3.0, 4.0]), Limits())
    assert optimal(asked, 1, limit_s=1).bound == 0
    assert optimal(asked, 3, limit_s=1).bound == 7


def test_large_graphs_are_refused_with_another_way() -> None:
    with pytest.raises(IndivisibleError, match="use clusters"):
        optimal(division(line([1.0] * LARGEST), Limits()), 4, limit_s=1)


def test_twenty_parts_are_proven() -> None:
    graph = random_graph(30, 2, chords=6)
    asked = division(graph, even_limits(graph, 20))
    found = optimal(asked, 20, limit_s=300)
    assert asked.broken(found.part) == []
    assert found.bound == pytest.approx(asked.cut(found.part))
