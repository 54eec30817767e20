"""CPU time of a step, from steps that workers tell and CPU time that agents count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.reports import Heartbeat, Progress, WorkerUsage
from ces_manager.work_meter import ENDED, KEEP, LEAST_STEPS, MOST_PAIRS, MOST_STARTS, Pair, WorkMeter, pace_of

START = datetime(2030, 1, 1, tzinfo=UTC)
BEAT_S = 2.0


def line(step: object, seen_s: float | None, allocation: str = "a", incarnation: int = 1, **data: Any) -> Progress:
    found = {"step": step} if step is not None else {}
    return Progress(
        node="n", allocation=allocation, job="j", task="w-0", incarnation=incarnation, seen_s=seen_s, data=found | data
    )


def beat(cpu_s: float | None, *allocations: str) -> Heartbeat:
    usage = [WorkerUsage(allocation=each, cpu=1, memory=1, cpu_s=cpu_s) for each in allocations or ("a",)]
    return Heartbeat(node="n", boot="b", workers=usage)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def run(meter: WorkMeter, seconds: float, *, rate: float, cpu: float, begin: float = 0.0, incarnation: int = 1) -> None:
    """A worker that does ``rate`` steps/s with ``cpu`` cores, looked at twice a second."""
    looks = int(seconds / 0.5)
    for look in range(1, looks + 1):
        now = look * 0.5
        meter.progressed(line(int(rate * now), begin + now, incarnation=incarnation), at(begin + now))
        if now % BEAT_S == 0:
            meter.heard(beat(cpu * now), at(begin + now))


@pytest.mark.parametrize(("rate", "cpu"), [(2.0, 1.0), (10.0, 0.25), (200.0, 1.9)])
def test_a_steady_task_is_found_to_take_what_it_takes(rate: float, cpu: float) -> None:
    meter = WorkMeter()
    run(meter, 60, rate=rate, cpu=cpu)
    pace = meter.pace("n", "a")
    assert pace is not None
    assert pace.cpu.ms == pytest.approx(1000 * cpu / rate, rel=0.05)
    assert pace.step == pytest.approx(1000 / rate, rel=0.05)
    assert pace.cpu.low <= pace.cpu.ms <= pace.cpu.high


def test_too_little_says_nothing() -> None:
    meter = WorkMeter()
    run(meter, 10, rate=20, cpu=1)
    assert meter.pace("n", "a") is None, "it takes ten seconds, after the first ten steps"
    run(meter, 60, rate=0.1, cpu=1, incarnation=2)
    assert meter.pace("n", "a") is None, f"less than {LEAST_STEPS} steps"
    assert meter.pace("n", "b") is None
    assert meter.pace("m", "a") is None


def test_another_start_begins_at_nothing() -> None:
    meter = WorkMeter()
    run(meter, 60, rate=10, cpu=1.0)
    run(meter, 60, rate=10, cpu=0.5, begin=60, incarnation=2)
    pace = meter.pace("n", "a")
    assert pace is not None
    assert pace.cpu.ms == pytest.approx(50, rel=0.05)


def test_cpu_time_that_falls_is_of_another_start_and_none_at_all_of_none() -> None:
    meter = WorkMeter()
    run(meter, 60, rate=10, cpu=1.0)
    before = meter.pace("n", "a")
    meter.progressed(line(700, 70.0), at(70))
    meter.heard(beat(0.0), at(70))
    meter.heard(beat(None), at(70))
    assert meter.pace("n", "a") == before, "one that is ending"
    meter.heard(beat(3.0), at(72))
    assert meter.pace("n", "a") is None


@pytest.mark.parametrize("step", [None, "7", True, -1, 1.5, 10**30])
def test_what_is_no_step_is_not_heard(step: object) -> None:
    meter = WorkMeter()
    meter.progressed(line(step, 1.0), START)
    meter.progressed(line(1, None), START)
    meter.progressed(line(1, 1e20), START)
    assert meter._nodes == {}


def test_rounds_are_steps_where_nothing_else_is() -> None:
    meter = WorkMeter()
    for second in range(1, 60):
        meter.progressed(line(None, float(second), round=second), at(second))
        meter.heard(beat(second * 0.5), at(second))
    pace = meter.pace("n", "a")
    assert pace is not None
    assert pace.cpu.ms == pytest.approx(500)


def test_those_of_which_no_heartbeat_tells_have_ended_until_they_are_forgotten() -> None:
    meter = WorkMeter()
    run(meter, 60, rate=10, cpu=1.0)
    assert meter.ended(at(60)) == {}
    ended = meter.ended(at(60) + ENDED)
    assert ended == {"a": meter.pace("n", "a")}
    meter.forget(["a", "nobody"])
    assert meter.ended(at(60) + ENDED) == {}


def test_it_stays_small_whatever_is_told() -> None:
    meter = WorkMeter()
    for number in range(MOST_STARTS + 7):
        meter.progressed(line(1, 1.0, f"a{number}"), START)
    assert len(meter._nodes["n"]) == MOST_STARTS
    meter.forget_old(START + KEEP)
    assert meter._nodes == {}
    run(meter, 600, rate=10, cpu=1.0)
    assert len(meter._nodes["n"]["a"].pairs) <= MOST_PAIRS
    pace = meter.pace("n", "a")
    assert pace is not None
    assert pace.steps > 5800, "what is dropped is in between"
    meter.forget_node("n")
    assert meter.pace("n", "a") is None


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e9), st.floats(0, 1e9)), min_size=0, max_size=MOST_PAIRS)
)
def test_no_pairs_break_it(told: list[tuple[int, float, float]]) -> None:
    meter = WorkMeter()
    for step, seen_s, cpu_s in told:
        meter.progressed(line(step, seen_s), START)
        meter.heard(beat(cpu_s), START)
    pace = meter.pace("n", "a")
    assert pace is None or (pace.steps >= LEAST_STEPS and 0 <= pace.cpu.low <= pace.cpu.ms <= pace.cpu.high)


def test_what_varies_is_said() -> None:
    """The second half takes twice as long."""
    pairs = [Pair(step, float(step), float(step if step <= 50 else 50 + 2 * (step - 50))) for step in range(0, 101)]
    pace = pace_of(pairs)
    assert pace is not None
    assert (pace.cpu.low, pace.cpu.ms, pace.cpu.high) == (1000, 1500, 2000)
