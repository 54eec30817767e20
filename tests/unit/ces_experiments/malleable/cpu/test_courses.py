"""How much CPU workers had, from a log that was made up."""

from __future__ import annotations

import pytest
from cpu_log import LOG
from resize_log import START, event

from ces_experiments.malleable.cpu.courses import courses, cpu_seconds_held


def test_what_grows_is_held_at_once_and_what_falls_until_it_is_confirmed() -> None:
    course = courses(LOG, {"j": 100})["j"]
    assert (course.fate, course.starts) == ("succeeded", 1)
    assert (course.queued, course.running, course.over) == (START, START + 2, START + 50)
    assert course.levels == [(START + 1, 100), (START + 10, 200), (START + 20, 50)]
    assert course.held == {
        "w-0": [(START + 1, 100), (START + 10, 200), (START + 20, 200), (START + 21, 50)],
        "w-1": [(START + 1, 100), (START + 10, 200), (START + 20, 200), (START + 22, 50)],
    }


def test_a_plan_may_say_with_how_much_workers_begin() -> None:
    given = [{"task": "w-0", "cpu_desired": 200}, {"task": "w-1", "cpu_desired": 200}]
    log = [LOG[0], event("plan.committed", 1.0, allocations=given), *LOG[2:]]
    course = courses(log, {"j": 100})["j"]
    assert course.levels[0] == (START + 1, 200)
    assert course.held["w-1"][0] == (START + 1, 200)


def test_a_job_that_is_placed_again_begins_with_what_it_asks_for() -> None:
    tasks = [{"task": "w-0"}]
    log = [
        *LOG[:5],
        event("job.rescheduling", 30.0),
        event("job.queued", 31.0),
        event("plan.committed", 32.0, allocations=tasks),
        event("job.running", 33.0),
        event("job.failed", 40.0),
    ]
    course = courses(log, {"j": 100})["j"]
    assert course.levels == [(START + 32, 100)]
    assert course.held == {"w-0": [(START + 32, 100)]}
    assert (course.running, course.starts, course.fate) == (START + 2, 2, "failed")


def test_other_jobs_are_not_looked_at() -> None:
    other = [each | {"data": each["data"] | {"job": "other"}} for each in LOG]
    assert courses(other, {"j": 100}) == {}
    assert courses([event("job.queued", 0.0)], {"j": 100})["j"].over is None


@pytest.mark.parametrize(
    ("since", "until", "seconds"),
    [(0, 10, 1.0), (5, 10, 0.5), (10, 20, 2.0), (5, 15, 1.5), (15, 40, 1.5), (-9, 5, 0.5), (20, 30, 0.5)],
)
def test_cpu_seconds_are_amounts_over_time(since: float, until: float, seconds: float) -> None:
    steps = [(0.0, 100), (10.0, 200), (20.0, 100), (25.0, 0)]
    assert cpu_seconds_held(steps, since, until) == pytest.approx(seconds)
