"""The programs of an owner."""

from __future__ import annotations

import time
from dataclasses import asdict

import pytest

from ces_experiments.malleable.tides import owner
from ces_experiments.malleable.tides.days import HOUR_S, OwnerDay
from ces_experiments.malleable.tides.owner import BEHIND_S, PIECE_S, Orders, worked


class Clock:
    """It goes on by sleeping, and by pieces of work."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "sleep", clock.sleep)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(owner, "piece", lambda rounds: clock.sleep(PIECE_S * rounds))
    return clock


def orders(rounds: int = 1) -> Orders:
    return Orders("nobody", asdict(OwnerDay(12 * HOUR_S)), begins=1.0, length_s=24.0, cores=0.2, rounds=rounds)


def test_it_works_as_much_as_its_day_says(clock: Clock) -> None:
    pieces = list(worked(orders()))
    assert all(took == pytest.approx(PIECE_S) for _, took in pieces)
    noon, night = (
        sum(first <= time_s < first + 2 * HOUR_S for time_s, _ in pieces) for first in (11 * HOUR_S, 23 * HOUR_S)
    )
    assert noon * PIECE_S / 2 == pytest.approx(0.2, rel=0.05)  # two hours are two seconds
    assert night < noon / 10
    assert clock.now == pytest.approx(25, abs=1)


def test_what_nobody_waits_for_any_more_is_left_out(clock: Clock) -> None:
    slow = 200  # pieces take longer than it is between them
    took = [each for _, each in worked(orders(slow))]
    assert max(took) <= BEHIND_S + slow * PIECE_S * 1.01
    assert len(took) < 40
