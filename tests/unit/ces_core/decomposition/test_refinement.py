"""Moves never make the cut worse, nor a part too full."""

from __future__ import annotations

import numpy as np
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.decomposition.graph import Limits, division, even_limits
from ces_core.decomposition.packing import packed
from ces_core.decomposition.refinement import refined


@settings(max_examples=15, deadline=None)
@given(size=st.integers(4, 16), seed=st.integers(0, 999), parts=st.integers(2, 4), archs=st.integers(0, 2))
def test_an_answer_stays_valid_and_cuts_no_more(size: int, seed: int, parts: int, archs: int) -> None:
    graph = random_graph(size, seed, archs=archs)
    asked = division(graph, even_limits(graph, parts))
    start = packed(asked, parts, np.random.default_rng(seed), by_traffic=False)
    if start is None:
        return
    before = start.copy()
    found = refined(asked, start, parts)
    assert np.array_equal(start, before), "the start is left as it was"
    assert asked.broken(found) == []
    assert int(found.max()) + 1 == parts
    assert asked.cut(found) <= asked.cut(start)


def test_two_vertices_change_places_where_neither_part_has_room() -> None:
    asked = division(line([9.0, 1.0, 9.0]), Limits(cpu=200))
    found = refined(asked, np.array([0, 1, 0, 1]), 2)
    assert asked.cut(found) == 1.0
    assert asked.broken(found) == []
