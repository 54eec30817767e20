"""Short stretches of a day, by every way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ces_core.adjustment.adjustment import Move
from ces_core.adjustment.terms import TaskFacts
from ces_sim.adjustment.course import Course, MoveRecord, run
from ces_sim.adjustment.town import DAY_S, WINDOWS, Conditions, day
from ces_sim.adjustment.ways import LeastDisturbance, SolvingAnew, Way

FACTS = {name: TaskFacts(3.0) for name in ("track", "render", "record")}
QUIET = Conditions(0, (), (0.0,) * 6, False, 30.0)


def least() -> Way:
    return LeastDisturbance(FACTS, DAY_S, 1000.0, 60.0)


def anew() -> Way:
    return SolvingAnew(FACTS)


def test_a_day_repeats_by_its_seed() -> None:
    first = day(3, 10.0)
    assert len(first) == WINDOWS
    assert first == day(3, 10.0)
    assert first != day(4, 10.0)
    assert {each.joined for each in first[: WINDOWS // 2]} == {False}
    assert first[-1].joined


@pytest.mark.parametrize("way", [least, anew])
def test_where_nothing_happens_nobody_is_asked(way: Callable[[], Way]) -> None:
    course = run(way(), [QUIET] * 50, FACTS)
    assert course.kept == [True] * 50
    assert (course.answers, course.moves) == (0, 0)


def test_a_user_at_the_other_end_of_town_is_followed_and_one_that_soon_walks_on_is_not() -> None:
    there = [QUIET] * 2 + [replace(QUIET, cell=1)] * 30
    assert run(least(), there, FACTS).moves == 0
    far = run(least(), [QUIET] * 20 + [replace(QUIET, cell=5)] * 400, FACTS)
    assert far.moves > 0
    assert far.useless == 0
    assert far.kept[21:] == [True] * 399
    assert far.records[0].why == ("user moved",)


def test_a_change_that_nobody_tells_is_noticed_by_missed_deadlines() -> None:
    """More requests than what the task's node can serve within its limit on load."""
    course = run(least(), [QUIET] * 20 + [replace(QUIET, rate=110.0)] * 20, FACTS)
    assert course.answers > 0
    assert course.kept[20:23] == [False] * 3


def test_a_user_that_walks_to_and_fro_gets_a_place_between_once_that_is_known() -> None:
    """Three stays at each end, then none but the present is in its place; looking ahead moves less for it."""
    ends = [replace(QUIET, cell=cell) for cell in (0, 5)]
    walk = [now for _ in range(12) for now in (ends[0], ends[1]) for _ in range(8)]

    def moves(horizon_s: float) -> Course:
        return run(LeastDisturbance(FACTS, DAY_S, 1e9, 60.0, horizon_s=horizon_s), walk, FACTS)

    blind, seeing = moves(0.0), moves(300.0)
    assert seeing.moves < blind.moves
    assert sum(seeing.kept) > sum(blind.kept)
    assert len(seeing.kept) - sum(seeing.kept) >= seeing.standing


def test_an_oscillation_is_a_return_under_equal_conditions() -> None:
    def record(at_s: float, src: str, dst: str, conditions: Conditions) -> MoveRecord:
        return MoveRecord(at_s, conditions, (Move("track", src, dst, 3.0, 90.0),), ("user moved",))

    away, back = record(0.0, "a", "b", QUIET), record(100.0, "b", "a", QUIET)
    called = record(100.0, "b", "a", replace(QUIET, cell=2))
    late = record(900.0, "b", "a", QUIET)
    assert Course(records=[away, back]).oscillations == 1
    assert (Course(records=[away, called]).oscillations, len(Course(records=[away, called]).returns())) == (0, 1)
    assert Course(records=[away, late]).returns() == []


def test_a_move_pays_once_it_has_made_up_for_the_time_that_it_took() -> None:
    """To the other end of the town: worth nothing without it, and about 0.9 once the tasks are there."""
    far = replace(QUIET, cell=5)

    def stays(windows: int) -> MoveRecord:
        (record,) = run(anew(), [QUIET] * 3 + [far] * windows, FACTS).records
        return record

    short, long = stays(1), stays(30)
    took = max(move.seconds for move in short.moves) / 10.0
    assert (short.kept, short.lost, long.kept) == (0, 0, 29)
    assert 10 * (1 - took) * 0.5 < short.gained < 10 * (1 - took)
    assert long.gained > 29 * 10 * 0.5
    assert long.paid
