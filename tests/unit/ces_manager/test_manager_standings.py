"""How waiting jobs stand in the queue: what the manager keeps of it, asks for, and shows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from manager_world import START, World, full_mesh, ring, sqlite_url

from ces_common import subjects
from ces_common.bus import MemoryBroker, MemoryBus, Message
from ces_common.db.outbox import events_after
from ces_common.messages.api import QueuePage
from ces_common.messages.events import JobWaiting, PlanRefused, Reason, Score, Standing, parse_event
from ces_common.messages.queries import QueueAnswer
from ces_manager import cluster, plans, views
from ces_manager.live_queue import FRESH_S, LiveQueue, Told
from ces_manager.measurements import Measurements
from ces_manager.standings import queue_page

NARROW = Reason(code="bandwidth-per-flow", text="too narrow", resource="bandwidth", needed=12e6, where="a -> b")
SCORE = Score(fit=1, priority=0, waiting=0.25, share=0, total=1.25, scarce="cpu")


def standing(job: str, position: int = 1, **more: object) -> Standing:
    return Standing.model_validate({"job": job, "position": position, "score": SCORE, **more})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(sqlite_url(tmp_path))
    made.add_nodes("a", "b", "c")
    made.put_topology(full_mesh(["a", "b", "c"]))
    yield made
    made.close()


def refuse(world: World, told: Standing, reason: Reason = NARROW) -> None:
    refused = PlanRefused(job=told.job, attempt=world.job(told.job).attempt, version=1, reason=reason, standing=told)
    world.write(lambda tx: plans.refuse_plan(tx, refused))


def waited(world: World) -> list[JobWaiting]:
    with world.uow.read() as tx:
        events = [parse_event(event.body) for event in events_after(tx, 0, None, 1000)]
    return [event.data for event in events if isinstance(event.data, JobWaiting)]


def page(world: World, told: Told, after: int = 0, limit: int = 100) -> QueuePage:
    with world.uow.read() as tx:
        return queue_page(tx, told, after=after, limit=limit)


def names(shown: QueuePage) -> list[tuple[int, str]]:
    return [(entry.position, entry.name) for entry in shown.items]


def test_what_a_job_waits_for_is_kept_and_told_with_the_names_of_those_that_hold_it(world: World) -> None:
    holder, job = world.submit(ring("holder")), world.submit(ring("waits"))
    world.run(holder, ["a", "b", "c"])
    told = standing(job, 2, reason=NARROW, start_at=START + timedelta(minutes=5), held_by=[holder, "long-gone"])
    refuse(world, told)
    with world.uow.read() as tx:
        view = views.job_view(tx, job, Measurements())
    assert view.waiting == NARROW
    assert view.standing is not None
    assert (view.standing.position, view.standing.start_at) == (2, START + timedelta(minutes=5))
    assert [(each.id, each.name) for each in view.standing.holders] == [(holder, "holder")]
    assert [each.standing for each in waited(world)] == [view.standing]


def test_only_what_changes_for_the_job_is_news(world: World) -> None:
    job = world.submit(ring())
    refuse(world, standing(job, 5))
    refuse(world, standing(job, 3))  # others have gone ahead, or have left
    assert len(waited(world)) == 1
    refuse(world, standing(job, 3, reserved=True))
    refuse(world, standing(job, 3, reserved=True, start_at=START))
    assert [each.standing.start_at for each in waited(world) if each.standing] == [None, None, START]


def test_a_job_that_has_a_place_or_queues_anew_stands_nowhere(world: World) -> None:
    job = world.submit(ring())

    def shown() -> object:
        with world.uow.read() as tx:
            return views.job_view(tx, job, Measurements()).standing

    refuse(world, standing(job))
    assert shown() is not None
    world.run(job, ["a", "b", "c"])
    assert shown() is None
    assert page(world, Told([standing(job)])).items == [], "the scheduler has not heard of it yet"
    world.write(lambda tx: cluster.drain(tx, "a"))
    world.confirm(job)
    assert names(page(world, Told())) == [(1, "ring")]
    assert shown() is None


def test_the_queue_is_as_the_scheduler_has_it_and_then_come_those_it_has_not_told_of(world: World) -> None:
    jobs = {
        name: world.submit(ring(name, priority=priority))
        for name, priority in zip("abcde", (1, 2, 3, 4, 5), strict=True)
    }
    world.cancel(jobs["c"])
    told = Told([standing(jobs[name], i) for i, name in enumerate("bca", 1)])
    assert names(page(world, told)) == [(1, "b"), (3, "a"), (4, "e"), (5, "d")]
    assert page(world, told).remark is None


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 7])
def test_pages_show_every_waiting_job_once(world: World, limit: int) -> None:
    jobs = [world.submit(ring(f"job-{i}")) for i in range(7)]
    for told in (Told(), Told([standing(jobs[i], place) for place, i in enumerate((4, 2, 0), 1)])):
        seen: list[str] = []
        after: str | None = "0"
        while after is not None:
            shown = page(world, told, int(after), limit)
            seen += [entry.name for entry in shown.items]
            after = shown.next
        assert sorted(seen) == [f"job-{i}" for i in range(7)]
        assert [entry[0] for entry in names(page(world, told))] == list(range(1, 8))


def test_without_the_scheduler_the_queue_shows_what_it_last_told(world: World) -> None:
    low, high = world.submit(ring("low", priority=10)), world.submit(ring("high", priority=90))
    refuse(world, standing(low, 1, reason=NARROW))
    shown = page(world, Told(remark="the scheduler does not answer"))
    assert names(shown) == [(1, "high"), (2, "low")]
    assert shown.remark == "the scheduler does not answer"
    assert [entry.reason for entry in shown.items] == [None, NARROW]
    assert [entry.standing is not None for entry in shown.items] == [False, True]
    assert shown.items[0].id == high


class Scheduler:
    """Answers as the scheduler does, and counts."""

    def __init__(self) -> None:
        self.bus, self.now, self.asked = MemoryBus(MemoryBroker()), 0.0, 0
        self.answer = QueueAnswer(version=7, standings=[standing("j")]).encode()
        self.live = LiveQueue(self.bus, lambda: self.now)

    async def serve(self) -> None:
        await self.bus.serve(subjects.rpc("scheduler", "queue"), self._reply)

    async def _reply(self, _: Message) -> bytes:
        self.asked += 1
        return self.answer


@pytest.fixture
async def scheduler() -> Scheduler:
    made = Scheduler()
    await made.bus.connect()
    return made


async def test_many_that_look_at_once_cost_one_answer(scheduler: Scheduler) -> None:
    await scheduler.serve()
    for told in await asyncio.gather(*(scheduler.live.look() for _ in range(20))):
        assert list(told.by_job) == ["j"]
        assert told.remark is None
    assert scheduler.asked == 1
    scheduler.now += FRESH_S
    await scheduler.live.look()
    assert scheduler.asked == 2


async def test_a_scheduler_that_is_not_there_or_makes_no_sense_is_said(scheduler: Scheduler) -> None:
    told = await scheduler.live.look()
    assert told.standings == ()
    assert told.remark is not None
    assert told.remark.startswith("no scheduler is there: in order of priority and age")
    await scheduler.serve()
    for answer, said in (
        (b"?", "the scheduler does not answer"),
        (QueueAnswer(version=0).encode(), "the scheduler has not looked"),
    ):
        scheduler.now += FRESH_S
        scheduler.answer = answer
        told = await scheduler.live.look()
        assert told.remark is not None
        assert told.remark.startswith(said)


async def test_a_scheduler_that_hangs_keeps_nobody_waiting_for_long(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: Message) -> bytes:
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr("ces_manager.live_queue.ANSWER_S", 0.01)
    await scheduler.bus.serve(subjects.rpc("scheduler", "queue"), never)
    told = await scheduler.live.look()
    assert told.remark is not None
    assert told.remark.startswith("the scheduler does not answer")
