"""The speed of a job from the steps that its first task tells: what is left out, and what harms nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.elastic import FASTEST, MOST_WORK, SLOWEST
from ces_common.messages.reports import Progress
from ces_manager.speed_meter import KEEP_S, LATEST_S, MOST_STARTS, READ_S, Reading, SpeedMeter

LOOK_S = 0.5  # between two looks of an agent at a log


def line(seen_s: float | None, step: object, allocation: str = "a", node: str = "n", incarnation: int = 1) -> Progress:
    data = {"step": step}
    return Progress(
        node=node, allocation=allocation, job="j", task="w-0", incarnation=incarnation, seen_s=seen_s, data=data
    )


def heard(lines: Iterable[Progress], meter: SpeedMeter | None = None, now: float = 0.0) -> SpeedMeter:
    meter = meter or SpeedMeter()
    for each in lines:
        meter.heard(each, now)
    return meter


def steps(rate: float, seconds: float, begin_s: float = 100.0, done: int = 0, **more: Any) -> list[Progress]:
    """What an agent sends of a worker with this speed that looks at its log twice a second."""
    lines, last = [], -1
    for look in range(1, int(seconds / LOOK_S) + 1):
        step = done + int(rate * look * LOOK_S)
        if step > last:
            lines.append(line(begin_s + look * LOOK_S, step, **more))
        last = step
    return lines


def reading(meter: SpeedMeter, now: float = READ_S) -> Reading:
    (found,) = meter.due(now)
    return found


@pytest.mark.parametrize("rate", [0.05, 0.4, 3.3, 7.7, 50.0, 1e6])
def test_a_steady_speed_is_found_whatever_a_step_takes(rate: float) -> None:
    found = reading(heard(steps(rate, max(60.0, 12 / rate))))
    assert found.rate == pytest.approx(rate, rel=0.05)


def test_the_first_steps_are_left_out_and_a_stall_in_between_does_not_count() -> None:
    slow = [line(100 + 0.5 * i, i) for i in range(1, 10)]  # two a second, for less than five
    fast = steps(20, 20, begin_s=105, done=10)
    assert reading(heard(slow + fast)).rate == pytest.approx(20, rel=0.05)
    stalled = steps(20, 24) + steps(20, 6, begin_s=126, done=480)  # two seconds in between
    assert reading(heard(stalled)).rate == pytest.approx(20, rel=0.05)


def test_a_change_of_speed_is_known_half_a_minute_later() -> None:
    assert reading(heard(steps(20, 60) + steps(5, 31, begin_s=160, done=1200))).rate == pytest.approx(5, rel=0.05)


def test_what_arrives_late_and_at_once_changes_nothing() -> None:
    """After an outage an agent sends what it could not: the manager's clock would see a hundred steps in no time."""
    meter = heard(steps(4, 10))
    heard(steps(4, 20, begin_s=110, done=40), meter, now=20.0)
    assert reading(meter, now=40.0).rate == pytest.approx(4, rel=0.05)


def test_steps_never_go_back_within_a_start() -> None:
    """An agent that starts reads a log again from its beginning."""
    meter = heard([*steps(20, 20), *steps(200, 1, begin_s=120)])
    assert reading(meter) == Reading("a", 1, 400, pytest.approx(20, rel=0.05), pytest.approx(20, abs=1), READ_S)


def test_another_start_begins_anew_and_an_earlier_one_says_nothing_more() -> None:
    meter = heard([*steps(20, 20), *steps(5, 20, begin_s=130, done=100, incarnation=2)])
    found = reading(meter)
    assert (found.incarnation, found.step) == (2, 200)
    assert found.rate == pytest.approx(5, rel=0.05)
    heard([line(160, 999, incarnation=1)], meter)
    assert reading(heard([line(161, 201, incarnation=2)], meter), 2 * READ_S).step == 201


@pytest.mark.parametrize("step", [None, "7", 7.0, True, -1, MOST_WORK + 1, 10**400, [7]])
def test_only_a_bounded_whole_number_is_a_step(step: object) -> None:
    assert heard([line(i, step) for i in range(60)]).due(READ_S) == []


def test_an_agent_that_tells_no_time_is_not_measured() -> None:
    assert heard([line(None, i) for i in range(60)]).due(READ_S) == []


def test_an_agent_that_tells_of_a_time_that_no_clock_shows_is_not_heard() -> None:
    """A speed over such a span would be no span that the manager could look back on."""
    assert heard([line(1e15 * i, 100 * i) for i in range(1, 60)]).due(READ_S) == []
    assert reading(heard([line(LATEST_S * i / 60, 10**11 * i) for i in range(61)])).span_s <= LATEST_S


@given(st.lists(st.tuples(st.floats(0, 1e24), st.integers(0, MOST_WORK)), max_size=60))
def test_whatever_is_said_a_speed_is_a_number_or_none(said: list[tuple[float, int]]) -> None:
    for found in heard([line(*each) for each in said]).due(READ_S):
        assert found.rate is None or SLOWEST <= found.rate <= FASTEST
        assert found.step >= next(step for seen_s, step in said if seen_s <= LATEST_S)


def test_a_job_is_looked_at_once_its_speed_is_known_and_each_half_minute_then() -> None:
    meter = heard(steps(20, 3))
    begins = reading(meter, 3.0)
    assert (begins.rate, begins.begun_s) == (None, 3.0), "too early to say how fast it is"
    assert meter.due(4.0) == []
    heard(steps(20, 5, begin_s=103, done=60), meter, 8.0)
    known = reading(meter, 8.0)
    assert known.rate is not None
    assert known.begun_s is None
    heard(steps(20, 5, begin_s=108, done=160), meter, 13.0)
    assert meter.due(13.0) == []
    assert reading(meter, 8.0 + READ_S).step == 260
    assert meter.due(8.0 + 2 * READ_S) == [], "it has told nothing new"


def test_one_that_is_slow_is_looked_at_for_its_steps() -> None:
    assert reading(heard([line(1, 0), line(20, 1)])) == Reading("a", 1, 1, None, 0.0, READ_S)


def test_one_node_crowds_out_no_other() -> None:
    meter = heard(steps(20, 20, node="honest"))
    for i in range(3 * MOST_STARTS):
        meter.heard(line(1.0, i, allocation=f"x{i}", node="liar"), 0.0)
    found = meter.due(READ_S)
    assert len(found) == 1 + MOST_STARTS
    assert [each.rate is not None for each in found if each.allocation == "a"] == [True]
    meter.forget_node("liar")
    heard([line(130, 401, node="honest")], meter, READ_S)
    assert reading(meter, 3 * READ_S).step == 401


def test_what_says_nothing_for_an_hour_is_forgotten() -> None:
    meter = heard(steps(20, 20))
    assert meter.due(KEEP_S + 1) == []
