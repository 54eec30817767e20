"""Moves never make the cut worse, nor a part too full."""

from __future__ import annotations

import numpy as np
import pytest
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.decomposition import refinement
from ces_core.decomposition.graph import Limits, division, even_limits
from ces_core.decomposition.packing import packed
from ces_core.decomposition.refinement import FEW, refined


@settings(max_examples=15, deadline=None)
@given(size=st.integers(4, 16), seed=st.integers(0, 999), parts=st.integers(2, 4), archs=st.integers(0, 2))
def test_an_answer_stays_valid_and_cuts_no_more(size: int, seed: int, parts: int, archs: int) -> None:
    graph = random_graph(size, seed, archs=archs)
    asked = division(graph, even_limits(graph, parts))
    start = packed(asked, parts, np.random.default_rng(seed), by_traffic=False)
    assert start is not None or archs
    if start is None:  # two architectures may need more parts than there are
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


@pytest.mark.parametrize(("size", "parts"), [(12, 3), (150, 12)])
def test_most_random_answers_are_bettered_much(size: int, parts: int) -> None:
    """The larger one is above the number of moves that are all worked out anew."""
    graph = random_graph(size, 4)
    asked = division(graph, even_limits(graph, parts))
    start = packed(asked, parts, np.random.default_rng(0), by_traffic=False)
    assert start is not None
    assert (size * parts > FEW) == (size > 12)
    found = refined(asked, start, parts)
    assert asked.broken(found) == []
    assert asked.cut(found) < 0.75 * asked.cut(start)


def test_moves_are_the_same_whether_all_or_some_are_worked_out_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(6):
        graph = random_graph(60, seed, archs=seed % 3)
        asked = division(graph, even_limits(graph, 5))
        start = packed(asked, 5, np.random.default_rng(seed), by_traffic=False)
        assert start is not None
        monkeypatch.setattr(refinement, "FEW", 10**9)
        every = refined(asked, start, 5)
        monkeypatch.setattr(refinement, "FEW", 0)
        assert np.array_equal(every, refined(asked, start, 5))


def test_a_heavy_pair_hides_no_small_gain() -> None:
    asked = division(line([1e13, 1.0, 3.0, 2.0]), Limits(cpu=300))
    found = refined(asked, np.array([0, 0, 0, 1, 1]), 2)
    assert asked.cut(found) == 1.0


def test_after_the_deadline_nothing_moves() -> None:
    asked = division(line([9.0, 1.0, 9.0]), Limits(cpu=200))
    start = np.array([0, 1, 0, 1])
    assert np.array_equal(refined(asked, start, 2, deadline=0.0), start)
