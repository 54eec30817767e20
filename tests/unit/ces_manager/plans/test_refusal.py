"""Why a job waits is stored with its queue status, where either changes."""

from __future__ import annotations

from datetime import timedelta

from manager_world import START, World, ring
from queue_refusals import NARROW, page, queue_status, refuse

from ces_common.db.outbox import ALL, events_after
from ces_common.messages.api import QueuePage
from ces_common.messages.events import JobWaiting, parse_event
from ces_manager.jobs import job_views
from ces_manager.measurements import Measurements
from ces_manager.nodes import operations
from ces_manager.queue.live import QueueReport


def waited(world: World) -> list[JobWaiting]:
    with world.uow.read() as tx:
        events = [parse_event(event.body.encode()) for event in events_after(tx, 0, ALL, 1000)]
    return [event.data for event in events if isinstance(event.data, JobWaiting)]


def names(shown: QueuePage) -> list[tuple[int, str]]:
    return [(entry.position, entry.name) for entry in shown.items]


def test_what_a_job_waits_for_is_kept_and_told_with_the_names_of_those_that_hold_it(world: World) -> None:
    holder, job = world.submit(ring("holder")), world.submit(ring("waits"))
    world.run(holder, ["a", "b", "c"])
    told = queue_status(job, 2, reason=NARROW, start_at=START + timedelta(minutes=5), held_by=[holder, "long-gone"])
    refuse(world, told)
    with world.uow.read() as tx:
        view = job_views.job_view(tx, job, Measurements())
    assert view.waiting == NARROW
    assert view.queue_status is not None
    assert (view.queue_status.position, view.queue_status.start_at) == (2, START + timedelta(minutes=5))
    assert [(each.id, each.name) for each in view.queue_status.holders] == [(holder, "holder")]
    [event] = waited(world)
    assert event.queue_status == view.queue_status.model_copy(update={"held_by": [holder]}), "what concerns its tenant"


def test_only_what_changes_for_the_job_is_news(world: World) -> None:
    job = world.submit(ring())
    refuse(world, queue_status(job, 5))
    refuse(world, queue_status(job, 3))  # others have gone ahead, or have left
    assert len(waited(world)) == 1
    refuse(world, queue_status(job, 3, reserved=True))
    refuse(world, queue_status(job, 3, reserved=True, start_at=START))
    assert [each.queue_status.start_at for each in waited(world) if each.queue_status] == [None, None, START]


def test_a_job_that_has_a_place_or_queues_anew_stands_nowhere(world: World) -> None:
    job = world.submit(ring())

    def shown() -> object:
        with world.uow.read() as tx:
            return job_views.job_view(tx, job, Measurements()).queue_status

    refuse(world, queue_status(job))
    assert shown() is not None
    world.run(job, ["a", "b", "c"])
    assert shown() is None
    assert page(world, QueueReport([queue_status(job)])).items == [], "the scheduler has not heard of it yet"
    world.write(lambda tx: operations.drain(tx, "a"))
    world.confirm(job)
    assert names(page(world, QueueReport())) == [(1, "ring")]
    assert shown() is None
