"""The queue as the scheduler reports it when asked."""

from __future__ import annotations

import asyncio

import pytest
from memory_bus import MemoryBroker, MemoryBus
from queue_refusals import queue_status

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.messages.queries import QueueAnswer
from ces_manager.queue.live import FRESH_S, LiveQueue


class Scheduler:
    """Answers as the scheduler does, and counts."""

    def __init__(self) -> None:
        self.bus, self.now, self.asked = MemoryBus(MemoryBroker()), 0.0, 0
        self.answer = QueueAnswer(version=7, statuses=[queue_status("j")]).encode()
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
    assert told.statuses == ()
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

    monkeypatch.setattr("ces_manager.queue.live.ANSWER_S", 0.01)
    await scheduler.bus.serve(subjects.rpc("scheduler", "queue"), never)
    told = await scheduler.live.look()
    assert told.remark is not None
    assert told.remark.startswith("the scheduler does not answer")
