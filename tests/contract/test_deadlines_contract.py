"""What is expected of deadlines, on both databases: a promise stands, a refusal ends the job, and each is told once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from manager_world import START, World, ring
from meshed_world import meshed_world
from sqlalchemy.engine import URL
from world_audit import findings

from ces_common.db.outbox import ALL, events_after
from ces_common.messages.api import JobView
from ces_common.messages.events import DeadlineJudged, DeadlineTold, Reason, parse_event
from ces_common.states import JobState
from ces_manager.jobs import job_views
from ces_manager.jobs.deadline import note_judgement
from ces_manager.measurements import Measurements

SOON = timedelta(minutes=5)
REFUSAL = Reason(code="deadline", text="it cannot end in time")


@pytest.fixture
def world(url: URL) -> Iterator[World]:
    with meshed_world(url, "a", "b") as made:
        yield made


def due(world: World, policy: str = "refuse") -> str:
    """A job of ten minutes that is to have ended within an hour."""
    return world.submit(ring(tasks=2, duration="10m", deadline={"within": "1h", "policy": policy}))


def judge(world: World, job: str, kept: bool, end_at: datetime | None = None, **more: Any) -> None:
    attempt = more.pop("attempt", 1)
    judged = DeadlineJudged(job=job, attempt=attempt, version=1, kept=kept, end_at=end_at, **more)
    world.write(lambda tx: note_judgement(tx, judged))


def told(world: World) -> list[tuple[bool, datetime | None, bool]]:
    """Of all jobs: whether in time, the end, and whether refused."""
    with world.uow.read() as tx:
        events = [parse_event(event.body.encode()) for event in events_after(tx, 0, ALL, 1000)]
    found = [event.data for event in events if isinstance(event.data, DeadlineTold)]
    return [(each.kept, each.end_at, each.refusal is not None) for each in found]


def view(world: World, job: str) -> JobView:
    with world.uow.read() as tx:
        return job_views.job_view(tx, job, Measurements())


def test_who_is_admitted_on_trust_is_told_of_once_and_the_same_changes_nothing(world: World) -> None:
    job = due(world)
    for end_at in (None, START + SOON, START + SOON):
        version = world.job(job).version
        judge(world, job, True, end_at)
    assert told(world) == [(True, None, False)]
    assert world.job(job).version == version
    assert view(world, job).expected_end_at == START + SOON


def test_a_deadline_is_a_time_from_submission_on(world: World) -> None:
    job = due(world)
    record = world.job(job)
    assert record.deadline_at == record.submitted_at + timedelta(hours=1)
    assert record.deadline is not None
    assert (record.deadline.policy, record.admitted) == ("refuse", False)
    assert view(world, job).deadline_at == record.deadline_at


def test_an_admitted_job_stays_so_and_a_miss_is_told_once(world: World) -> None:
    job = due(world)
    judge(world, job, True, START + SOON)
    assert world.job(job).admitted
    judge(world, job, False, refusal=REFUSAL)
    assert world.job(job).state is JobState.QUEUED, "another scheduler comes too late"
    judge(world, job, True, START + 2 * SOON)
    assert view(world, job).expected_end_at == START + 2 * SOON
    for minutes in (61, 70):
        judge(world, job, False, START + timedelta(minutes=minutes))
    judge(world, job, True, START + SOON)
    judge(world, job, False, START + timedelta(minutes=80))
    assert told(world) == [(True, START + SOON, False), (False, START + timedelta(minutes=61), False)]
    assert view(world, job).expected_end_at == START + timedelta(minutes=80)


def test_a_refused_job_has_failed_with_its_earliest_end_and_gets_no_plan(world: World) -> None:
    job = due(world)
    plan = world.propose(job, ["a", "b"])
    judge(world, job, False, START + timedelta(hours=2), refusal=REFUSAL)
    shown = view(world, job)
    assert (shown.state, shown.reason) == (JobState.FAILED, "deadline: it cannot end in time")
    assert shown.expected_end_at == START + timedelta(hours=2)
    assert world.commit(plan) == "job ring is failed, not queued"
    assert told(world) == [(False, START + timedelta(hours=2), True)]
    assert findings(world) == []


def test_one_that_has_its_place_is_not_refused(world: World) -> None:
    job = due(world)
    world.run(job, ["a", "b"])
    judge(world, job, False, refusal=REFUSAL)
    assert world.job(job).state is JobState.RUNNING
    assert told(world) == []


def test_one_that_may_be_late_is_neither_admitted_nor_refused(world: World) -> None:
    job = due(world, "best-effort")
    judge(world, job, False, refusal=REFUSAL)
    judge(world, job, False, START + timedelta(hours=2))
    judge(world, job, False, START + timedelta(hours=3))
    record = world.job(job)
    assert (record.state, record.admitted) == (JobState.QUEUED, False)
    assert told(world) == [(False, START + timedelta(hours=2), False)]


def test_what_is_said_of_another_attempt_or_of_no_job_is_void(world: World) -> None:
    job = due(world)
    judge(world, job, True, START + SOON, attempt=2)
    judge(world, "nobody", True)
    judge(world, world.submit(ring("without", tasks=2)), True)
    assert not world.job(job).admitted
    assert told(world) == []
