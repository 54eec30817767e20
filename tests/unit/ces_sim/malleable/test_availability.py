"""When edge servers are idle."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_sim.malleable.availability import DAY_S, Tides, idle_times, load, server_speeds

CALM = Tides(1, spread_s=0.0, bursts=0.0, outages=0.0)


def idle_s(times: list[tuple[float, frozenset[int]]], server: int) -> float:
    ends = [time for time, _ in times[1:]]
    return sum(end - begin for (begin, idle), end in zip(times, ends, strict=False) if server in idle)


def test_the_trough_is_a_fiftieth_of_the_peak() -> None:
    assert load(7.0, 7.0) == pytest.approx(1.0)
    assert load(7.0 + DAY_S / 2, 7.0) == pytest.approx(1 / 50)


def test_half_of_the_time_is_below_half_of_the_peak() -> None:
    """Nearly: a cosine from a fiftieth to one is below a half for 0.49 of the day."""
    below = sum(load(second, 0.0) < 0.5 for second in range(0, int(DAY_S), 60)) / (DAY_S / 60)
    assert below == pytest.approx(0.49, abs=0.01)
    assert idle_s(idle_times(CALM, 0.0, 10 * DAY_S, 1), 0) / (10 * DAY_S) == pytest.approx(below, abs=0.01)


def test_bursts_and_outages_take_time_away() -> None:
    calm, busy = (idle_s(idle_times(tides, 0.0, 10 * DAY_S, 3), 0) for tides in (CALM, Tides(1, spread_s=0.0)))
    assert busy < calm


def test_the_same_seed_is_the_same_and_another_another() -> None:
    tides = Tides(4)
    assert idle_times(tides, 5.0, DAY_S, 1) == idle_times(tides, 5.0, DAY_S, 1)
    assert idle_times(tides, 5.0, DAY_S, 1) != idle_times(tides, 5.0, DAY_S, 2)
    assert server_speeds(tides, 1) == server_speeds(tides, 1) != server_speeds(tides, 2)
    assert all(0.24 <= speed <= 0.36 for speed in server_speeds(tides, 1).values())


@given(st.integers(1, 8), st.integers(0, 99), st.floats(0.05, 1.0))
def test_times_ascend_and_every_change_is_one(servers: int, seed: int, idle_below: float) -> None:
    times = idle_times(Tides(servers, idle_below), 100.0, 100.0 + 2 * DAY_S, seed)
    assert times[0][0] == 100.0
    assert times[-1] == (100.0 + 2 * DAY_S, frozenset())
    for (before, idle), (after, other) in pairwise(times):
        assert before < after
        assert idle <= set(range(servers))
        assert idle != other or after == times[-1][0]
