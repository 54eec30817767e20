"""What owners need of their devices, hour by hour."""

from __future__ import annotations

import pytest

from ces_experiments.malleable.tides.days import HOUR_S, OwnerDay, draw
from ces_sim.malleable.availability import DAY_S, TROUGH


def test_a_day_is_highest_when_the_owner_is_busiest_and_half_of_it_is_below_half() -> None:
    day = OwnerDay(14 * HOUR_S)
    assert day.load(14 * HOUR_S) == 1
    assert day.load(2 * HOUR_S) == pytest.approx(TROUGH)
    low = sum(day.load(minute * 60) < 0.5 for minute in range(24 * 60)) / (24 * 60)
    assert low == pytest.approx(0.49, abs=0.02)


def test_a_burst_is_as_high_as_the_day_ever_gets() -> None:
    day = OwnerDay(14 * HOUR_S, ((2 * HOUR_S, 3 * HOUR_S),))
    assert [day.load(hour * HOUR_S) for hour in (2, 2.9)] == [1, 1]
    assert day.load(3 * HOUR_S) < 0.1


def test_the_same_seed_draws_the_same_days() -> None:
    days = draw(3, 4)
    assert days == draw(3, 4) != draw(4, 4)
    assert len({day.busiest_s for day in days}) == 4
    assert all(0 <= day.busiest_s < DAY_S for day in days)
    assert all(0 <= begin < DAY_S and begin < end for day in days for begin, end in day.bursts)
