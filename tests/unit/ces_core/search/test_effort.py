"""How long a search goes on."""

from __future__ import annotations

import pytest

from ces_core.search.effort import SLICE_S, Effort


def test_a_search_looks_at_the_clock_however_slow_its_steps_are() -> None:
    now = 0.0

    def step(limit: int) -> int:
        nonlocal now
        now += limit * 0.02
        return limit

    effort = Effort(1.0, lambda: now)
    effort.spend(step, maximum=5)
    assert now <= 0.02 * 5 + 1e-9  # before the pace is known
    effort.spend(step, until=0.5)
    assert now == pytest.approx(0.5, abs=0.02 + SLICE_S)
    effort.spend(step)
    assert now == pytest.approx(1.0, abs=0.02 + SLICE_S)
    assert effort.spend(step) == 0


def test_without_a_deadline_a_search_ends_all_the_same() -> None:
    effort = Effort(None, lambda: 0.0)
    most = effort.left()
    assert effort.spend(lambda limit: limit, until=most / 2) == most / 2
    assert effort.spend(lambda limit: limit) == most / 2
    assert effort.left() <= 0
    assert Effort(None, lambda: 0.0).spend(lambda limit: limit - 1) == most - 1  # nothing more to see
