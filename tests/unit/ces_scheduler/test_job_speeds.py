"""What a job's speed is judged by, and how much it has to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from malleable_records import START, malleable, speeds

from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.malleable.speed import POWER
from ces_scheduler.job_speeds import SpeedModels, left_of, rates_around, speed_of

LINEAR = {1: 2.0, 2: 4.0, 4: 8.0}


def job(name: str, measured: Mapping[int, float] | None = None, size: int = 2, **speed: Any) -> JobRecord:
    told = None if measured is None else speeds(measured)
    return malleable(name, ["a"] * size, speed=speed, speeds=told)


def of_another(record: JobRecord, **changes: Any) -> JobRecord:
    tasks = [task.model_copy(update=changes) for task in record.tasks]
    return record.model_copy(update={"tasks": tasks})


def test_a_job_of_which_nothing_is_known() -> None:
    assert speed_of(job("one"), []) is POWER
    assert rates_around(job("one"), []) == {}


def test_what_was_measured_counts_before_everything() -> None:
    model = speed_of(job("one", LINEAR, hint={1: 50.0}), [job("two", {1: 70.0})])
    assert {size: model.rate(size) for size in LINEAR} == pytest.approx(LINEAR, rel=0.05)


def test_the_hint_gives_the_shape_where_one_size_was_measured() -> None:
    flat = job("one", {2: 3.0}, hint={1: 10.0, 2: 10.0, 4: 10.0})
    assert rates_around(flat, [job("two", LINEAR)]) == pytest.approx({1: 3.0, 2: 3.0, 3: 3.0}, rel=0.02)


def test_a_hint_alone_is_taken_at_its_word() -> None:
    assert speed_of(job("one", hint=LINEAR), []).rate(2) == pytest.approx(4.0, rel=0.05)


def test_another_job_of_its_kind_gives_the_shape_and_that_of_most_sizes_does() -> None:
    others = [job("few", {1: 9.0}), job("many", LINEAR), job("none")]
    assert speed_of(job("one"), others).rate(2) == pytest.approx(4.0, rel=0.05)
    assert speed_of(job("one", {1: 1.0}), others).rate(4) == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("changes", [{"command": ["y"]}, {"image": "other"}])
def test_a_job_that_runs_something_else_says_nothing(changes: dict[str, Any]) -> None:
    assert speed_of(job("one"), [of_another(job("two", LINEAR), **changes)]) is POWER


def test_neither_does_another_tenants_nor_the_job_itself() -> None:
    mine = job("one")
    foreign = job("two", LINEAR).model_copy(update={"tenant": "other"})
    assert speed_of(mine, [foreign, mine.model_copy(update={"speeds": speeds(LINEAR)})]) is POWER


def test_old_measurements_weigh_less() -> None:
    told = speeds({1: 1.0, 2: 2.0, 4: 2.0})
    sizes = dict(told.sizes)
    sizes[4] = sizes[4].model_copy(update={"at": START - timedelta(days=1)})
    record, fresh = (
        job("one").model_copy(update={"speeds": each}) for each in (told.model_copy(update={"sizes": sizes}), told)
    )
    assert speed_of(record, []).rate(4) > speed_of(fresh, []).rate(4)


@pytest.mark.parametrize(
    ("total", "step", "left"), [(None, 40, None), (100, None, 100.0), (100, 40, 60.0), (100, 140, 0.0)]
)
def test_what_is_left(total: int | None, step: int | None, left: float | None) -> None:
    told = None if step is None else speeds({}, step)
    record = job("one", total=total).model_copy(update={"speeds": told})
    assert left_of(record, POWER, START.timestamp() + 60) == left, "of whose speed nothing is known"


@pytest.mark.parametrize(
    ("ran_s", "later_s", "changes", "left"),
    [
        (60.0, 0.0, {}, 600.0),
        (60.0, 5.0, {}, 580.0),
        (60.0, 30.0, {}, 480.0),
        (60.0, 60.0, {}, 450.0),  # it was read by then, and more than a twentieth would have been noted
        (-2.0, 5.0, {}, 588.0),  # it began again after that
        (60.0, 5.0, {"state": JobState.RESIZING}, 600.0),
        (60.0, 5.0, {"state": JobState.RESCHEDULING}, 600.0),
    ],
)
def test_what_was_done_since_the_last_step_that_was_noted(
    ran_s: float, later_s: float, changes: dict[str, Any], left: float
) -> None:
    told = {"speed": {"total": 1000}, "speeds": speeds(LINEAR, step=400)}
    record = malleable("one", ["a", "b"], ran_s=ran_s, **told, **changes)
    found = left_of(record, speed_of(record, []), START.timestamp() + later_s)
    assert found == pytest.approx(left, rel=0.002)


def unbounded(record: JobRecord, hint: dict[int, float]) -> JobRecord:
    """With a hint that no job file may have."""
    assert record.spec is not None
    assert record.spec.elastic is not None
    speed = record.spec.elastic.speed.model_copy(update={"hint": hint})
    elastic = record.spec.elastic.model_copy(update={"speed": speed})
    return record.model_copy(update={"spec": record.spec.model_copy(update={"elastic": elastic})})


@pytest.mark.parametrize("hint", [{1: 1e-310, 2: 1e-310}, {1: 0.0}, {1: math.inf}, {1: 1e-320, 8: 1e300}])
def test_of_speeds_that_make_no_sense_nothing_is_known(hint: dict[int, float]) -> None:
    assert speed_of(unbounded(job("one"), hint), []) is POWER


def test_what_is_said_of_speeds_is_within_their_bounds() -> None:
    assert rates_around(job("one", {1: 1e12}), []) == {1: 1e12, 2: 1e12, 3: 1e12}


def test_the_speeds_next_to_its_size() -> None:
    assert list(rates_around(job("one", LINEAR, size=1), [])) == [1, 2]
    assert list(rates_around(job("one", LINEAR, size=4), [])) == [3, 4, 5]
    assert list(rates_around(job("one", LINEAR, size=8), [])) == [7, 8]


def test_models_are_worked_out_again_where_something_has_changed() -> None:
    models, one, two = SpeedModels(), job("one", LINEAR), job("two")
    first = models.of([one, two], [one, two])
    assert first["two"].rate(1) == pytest.approx(2.0, rel=0.05), "by the other one, which is of its kind"
    assert models.of([one], [one])["one"] is first["one"]
    faster = job("one", {1: 20.0})
    again = models.of([faster, two], [faster, two])
    assert [again[name].rate(1) for name in ("one", "two")] == pytest.approx([20.0, 20.0])
