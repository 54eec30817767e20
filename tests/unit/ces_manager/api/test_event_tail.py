"""Streams share what they read, and each misses nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_common.db.outbox import StoredEvent
from ces_manager.api import event_tail
from ces_manager.api.event_tail import EventTail
from ces_manager.api.streams import event_stream
from ces_manager.broadcast import Broadcast

JOBS = ("a", "b", None)


class Log:
    """The events of a database, and how often it was read."""

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []
        self.broadcast, self.reads = Broadcast(), 0

    def add(self, job: str | None) -> None:
        number = len(self.events) + 1
        self.events.append(StoredEvent(number, f"e{number}", "ces.v1.job.queued", "s", job, f'{{"n": {number}}}'))
        self.broadcast.wake()

    def numbers(self, job: str | None, after: int = 0) -> list[int]:
        return [event.sequence for event in self.events if event.sequence > after and job in (None, event.job)]

    async def read(self, after: int, job: str | None, limit: int) -> list[StoredEvent]:
        self.reads += 1
        await asyncio.sleep(0)
        return [event for event in self.events if event.sequence > after and job in (None, event.job)][:limit]

    async def latest(self) -> int:
        self.reads += 1
        return len(self.events)

    def tail(self) -> EventTail:
        return EventTail(self.read, self.latest, self.broadcast)


STEP = st.one_of(st.tuples(st.just("add"), st.sampled_from(JOBS)), st.tuples(st.just("look"), st.integers(0, 2)))


@settings(deadline=None)
@given(st.lists(STEP, max_size=60), st.integers(0, 12))
def test_each_stream_gets_all_of_its_events_once_in_order(steps: list[tuple[str, Any]], before: int) -> None:
    async def history() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(event_tail, "KEPT", 4)
            patch.setattr(event_tail, "BATCH", 3)
            log = Log()
            for number in range(before):
                log.add(JOBS[number % 3])
            tail = log.tail()
            seen, got = [0, 0, 0], [[], [], []]

            async def look(stream: int) -> None:
                while True:
                    events, seen[stream] = await tail.after(seen[stream], JOBS[stream])
                    got[stream] += [event.sequence for event in events]
                    if not events:
                        return

            for what, which in [*steps, ("look", 0), ("look", 1), ("look", 2)]:
                if what == "add":
                    log.add(which)
                else:
                    await look(which)
            assert got == [log.numbers(job) for job in JOBS]

    asyncio.run(history())


async def test_after_a_promoted_standby_with_fewer_events_new_streams_get_the_new_ones() -> None:
    log = Log()
    for _ in range(10):
        log.add("a")
    tail = log.tail()
    assert await tail.after(0, None) == (log.events, 10)
    del log.events[5:]
    log.broadcast.wake()
    found, seen = await tail.after(0, None)
    assert ([event.sequence for event in found], seen) == ([1, 2, 3, 4, 5], 5)
    log.add("a")
    found, seen = await tail.after(seen, None)
    assert ([event.sequence for event in found], seen) == ([6], 6)


async def test_who_comes_after_a_quiet_time_makes_nobody_read_what_happened_meanwhile() -> None:
    log = Log()
    tail = log.tail()
    await tail.after(0, None)
    for _ in range(20 * event_tail.KEPT):
        log.add("a")
    log.reads = 0
    assert await tail.after(len(log.events), None) == ([], len(log.events))
    assert log.reads <= 2


async def test_a_hundred_streams_read_each_commit_once() -> None:
    log, stopping = Log(), asyncio.Event()
    log.add("a")
    tail, got = log.tail(), []

    async def follow(job: str | None) -> None:
        response = event_stream(log.broadcast, tail, 1, job, stopping)
        async for event in response.body_iterator:
            got.append((job, event.id))

    streams = [asyncio.create_task(follow(job)) for job in JOBS for _ in range(40)]
    await asyncio.sleep(0.05)
    log.reads = 0
    for number in range(2, 7):
        log.add("a")
        async with asyncio.timeout(30):
            while len(got) < 80 * (number - 1):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    stopping.set()
    log.broadcast.wake()
    await asyncio.gather(*streams)
    assert {job for job, _ in got} == {"a", None}
    assert (
        log.reads <= 5 * 4 + 10
    )  # each commit needs one read that finds it and one that finds no more; some a second look
