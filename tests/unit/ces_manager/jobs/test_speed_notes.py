"""What is kept of the speed of malleable jobs, when, and of which."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from history_actors import malleable
from manager_world import START, World, ring
from speed_readings import kept, note, reading, tells

from ces_common.messages.speeds import JobSpeeds, SizeSpeed
from ces_common.states import JobState
from ces_manager.jobs import commands
from ces_manager.jobs.speed_notes import noted
from ces_manager.speed_meter import Reading

READ = Reading("a", 1, 100, 5.0, 10.0)
BEFORE = JobSpeeds(step=100, attempt=1, incarnation=1, at=START, sizes={2: SizeSpeed(rate=5.0, at=START)})
LATER = START + timedelta(minutes=1)


def test_the_first_reading_is_kept() -> None:
    assert noted(None, READ, 1, 2, None, START, START) == BEFORE


@pytest.mark.parametrize(
    ("step", "rate", "total", "kept"),
    [
        (100, 5.0, None, False),
        (104, 5.2, None, False),
        (106, 5.0, None, True),  # a twentieth further
        (104, 5.3, None, True),  # or faster
        (104, 4.7, None, True),
        (104, None, None, False),
        (140, 5.0, 1000, False),  # a twentieth of what is left is 45
        (146, 5.0, 1000, True),
        (101, 5.0, 110, True),
        (140, 5.0, 100, True),  # it has done more than its file says
    ],
)
def test_only_what_is_material_is_kept(step: int, rate: float | None, total: int | None, kept: bool) -> None:
    found = noted(BEFORE, replace(READ, step=step, rate=rate), 1, 2, total, LATER, START)
    assert (found is not None) is kept


def test_a_new_speed_counts_as_much_as_all_before() -> None:
    found = noted(BEFORE, replace(READ, step=150, rate=7.0), 1, 2, None, LATER, START)
    assert found is not None
    assert found.sizes == {2: SizeSpeed(rate=6.0, at=LATER)}
    assert (found.step, found.at) == (150, LATER)


def test_each_size_has_its_own_and_a_resize_takes_no_step_back() -> None:
    found = noted(BEFORE, replace(READ, step=120, rate=8.0), 2, 4, None, LATER, START)
    assert found is not None
    assert {size: each.rate for size, each in found.sizes.items()} == {2: 5.0, 4: 8.0}


def test_steps_go_back_with_another_start_alone() -> None:
    """One from an older checkpoint; within a start, what a manager heard that knows less is no step back."""
    again = noted(BEFORE, replace(READ, incarnation=2, step=60, rate=None), 1, 2, None, LATER, START)
    assert again is not None
    assert (again.step, again.incarnation) == (60, 2)
    assert again.sizes == BEFORE.sizes
    same = noted(BEFORE, replace(READ, step=60, rate=9.0), 1, 2, None, LATER, START)
    assert same is not None
    assert same.step == 100


def test_how_long_a_start_takes_to_its_first_step_is_kept_until_another_has_told() -> None:
    """It runs since the start of the minute, and told of a step 40 s ago."""
    begins = replace(READ, incarnation=2, rate=None, begun_s=40.0)
    first = noted(BEFORE, begins, 1, 2, None, LATER, START)
    assert first is not None
    assert first.load_s == 20.0
    again = noted(first, replace(READ, incarnation=2, step=900, begun_s=0.0), 1, 2, None, LATER, START)
    assert again is not None
    assert again.load_s == 20.0, "it was seen to begin before"
    unseen = noted(first, replace(READ, incarnation=3), 1, 2, None, LATER, START)
    assert unseen is not None
    assert unseen.load_s == 20.0
    early = noted(first, replace(begins, incarnation=3), 1, 2, None, LATER, LATER - timedelta(seconds=39))
    assert early is not None
    assert early.load_s == 0.0, "the manager has heard of its step before it knew that all of it runs"


@pytest.fixture
def job(world: World) -> str:
    made = world.submit(malleable(low=2))
    world.run(made, ["a", "b"])
    world.wait(60)
    return made


def test_a_change_is_one_version_and_no_event(world: World, job: str) -> None:
    before, events = world.snapshot().version, world.events()
    note(world, reading(world, job))
    assert world.snapshot().version == before + 1
    assert world.events() == events
    note(world, reading(world, job))
    assert world.snapshot().version == before + 1


def test_a_resize_keeps_what_was_measured(world: World, job: str) -> None:
    note(world, reading(world, job))
    assert world.resize(job, 4, ["a", "b"]) is None
    world.confirm(job)
    world.network(job)
    world.tell(job, "running")
    assert world.job(job).state is JobState.RUNNING
    assert kept(world, job) == (100, {2: 5.0})
    world.wait(60)
    note(world, reading(world, job, step=90, rate=8.0))
    assert kept(world, job) == (90, {2: 5.0, 4: 8.0})


@pytest.mark.parametrize(("step", "known"), [(103, 103), (90, 100)])
def test_with_a_resize_the_last_step_is_noted_however_little_that_changes(
    world: World, job: str, step: int, known: int
) -> None:
    """But none is taken back."""
    note(world, reading(world, job))
    world.wait(7)
    tells(world, job, step)
    assert world.resize(job, 4, ["a", "b"]) is None
    speeds = world.job(job).speeds
    assert speeds is not None
    assert (speeds.step, speeds.at == world.now) == (known, step > 100)
    assert kept(world, job) == (known, {2: 5.0})


def test_what_another_start_has_told_is_not_noted_with_a_resize(world: World, job: str) -> None:
    note(world, reading(world, job))
    tells(world, job, 200, incarnation=0)
    assert world.resize(job, 4, ["a", "b"]) is None
    assert kept(world, job) == (100, {2: 5.0})


def test_a_resize_that_is_rejected_notes_nothing(world: World, job: str) -> None:
    note(world, reading(world, job))
    tells(world, job, 200)
    assert world.resize(job, 99, ["a", "b"]) is not None
    assert kept(world, job) == (100, {2: 5.0})


@pytest.mark.parametrize("changes", [{"incarnation": 2}, {"allocation": "nothing"}])
def test_only_the_present_start_counts(world: World, job: str, changes: dict[str, Any]) -> None:
    note(world, replace(reading(world, job), **changes))
    assert world.job(job).speeds is None


def test_neither_the_other_tasks_nor_a_job_of_fixed_size_are_measured(world: World, job: str) -> None:
    rigid = world.submit(ring(tasks=1))
    world.run(rigid, ["c"])
    world.wait(60)
    second = world.job(job).allocations[1]
    note(world, reading(world, rigid), replace(reading(world, job), allocation=second.id))
    assert (world.job(job).speeds, world.job(rigid).speeds) == (None, None)


def test_a_speed_over_a_pause_is_none(world: World, job: str) -> None:
    """The steps count all the same."""
    world.write(lambda tx: commands.pause_job(tx, job))
    note(world, reading(world, job))
    assert world.job(job).speeds is None
    world.write(lambda tx: commands.resume_job(tx, job))
    world.wait(5)
    note(world, reading(world, job))
    assert kept(world, job) == (100, {})
    world.wait(30)
    note(world, reading(world, job, step=200))
    assert kept(world, job) == (200, {2: 5.0})


def test_a_job_that_begins_again_keeps_its_speeds(world: World, job: str) -> None:
    note(world, reading(world, job))
    world.tell(job, "exited", "w-0", exit_code=1)
    assert kept(world, job) == (100, {2: 5.0})
    world.tell(job, "running")
    world.wait(60)
    note(world, reading(world, job, step=40, incarnation=2))
    assert kept(world, job) == (40, {2: 5.0})
