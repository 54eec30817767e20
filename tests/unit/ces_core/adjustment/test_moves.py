"""Which assignments are a number of moves away."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_core.adjustment import moves as module
from ces_core.adjustment.moves import Moves


@given(
    domain=st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=4),
    present=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    moves=st.integers(1, 3),
)
def test_all_of_them_and_each_once(domain: list[list[bool]], present: list[int], moves: int) -> None:
    here = present[: len(domain)]
    allowed = np.array(domain)
    every = Moves.of(here, allowed)
    rows = [tuple(row) for chunk in every.assignments(moves) for row in chunk.tolist()]
    expected = {
        row
        for row in product(range(4), repeat=len(here))
        if sum(new != old for new, old in zip(row, here, strict=True)) == moves
        and all(new == old or allowed[t, new] for t, (new, old) in enumerate(zip(row, here, strict=True)))
    }
    assert len(rows) == len(set(rows)) == every.count(moves)
    assert set(rows) == expected


def test_of_too_many_the_most_promising_places_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 30)
    every = Moves.of([0, 0, 0], np.ones((3, 9), dtype=np.bool_))
    promise = np.tile(np.arange(9.0), (3, 1))
    fewer = every.narrowed(2, promise)
    assert every.complete
    assert not fewer.complete
    assert 0 < fewer.count(2) <= 30
    assert {8} <= set(np.concatenate(fewer.nodes).tolist()) <= {5, 6, 7, 8}


def test_few_are_all_kept() -> None:
    every = Moves.of([0, 1], np.ones((2, 3), dtype=np.bool_))
    assert every.narrowed(2, np.zeros((2, 3))) is every
