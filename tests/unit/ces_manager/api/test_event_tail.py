"""Streams share what they read, and each misses nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_common.db.outbox import ALL, EventFilter, StoredEvent
from ces_common.messages.reports import Progress
from ces_manager.api import event_tail
from ces_manager.api.event_tail import EventTail
from ces_manager.api.streams import SO_FAR, event_stream
from ces_manager.broadcast import Broadcast

TENANTS = {"a": "x", "b": "y", None: None}  # job -> whose it is
JOBS = tuple(TENANTS)
PROGRESS = Progress(node="n", allocation="x", job="a", task="t", data={})
FOLLOWED = (EventFilter(job="a"), EventFilter(job="b"), ALL, EventFilter(tenants=["y", "z"]))


class Log:
    """The events of a database, and how often it was read."""

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []
        self.broadcast, self.reads = Broadcast(), 0

    def add(self, job: str | None) -> None:
        number = len(self.events) + 1
        body = f'{{"n": {number}}}'
        self.events.append(StoredEvent(number, f"e{number}", "ces.v1.job.queued", "s", job, body, TENANTS[job]))
        self.broadcast.wake()

    def numbers(self, which: EventFilter) -> list[int]:
        return [event.sequence for event in self.events if which.admits(event)]

    async def read(self, after: int, which: EventFilter, limit: int) -> list[StoredEvent]:
        self.reads += 1
        await asyncio.sleep(0)
        return [event for event in self.events if event.sequence > after and which.admits(event)][:limit]

    async def latest(self) -> int:
        self.reads += 1
        return len(self.events)

    def tail(self) -> EventTail:
        return EventTail(self.read, self.latest, self.broadcast)


STEP = st.one_of(st.tuples(st.just("add"), st.sampled_from(JOBS)), st.tuples(st.just("look"), st.integers(0, 3)))


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
            seen, got = [0] * len(FOLLOWED), [[] for _ in FOLLOWED]

            async def look(stream: int) -> None:
                while True:
                    events, seen[stream] = await tail.after(seen[stream], FOLLOWED[stream])
                    got[stream] += [event.sequence for event in events]
                    if not events:
                        return

            for what, which in [*steps, *(("look", stream) for stream in range(len(FOLLOWED)))]:
                if what == "add":
                    log.add(which)
                else:
                    await look(which)
            assert got == [log.numbers(which) for which in FOLLOWED]

    asyncio.run(history())


async def test_after_a_promoted_standby_with_fewer_events_new_streams_get_the_new_ones() -> None:
    log = Log()
    for _ in range(10):
        log.add("a")
    tail = log.tail()
    assert await tail.after(0, ALL) == (log.events, 10)
    del log.events[5:]
    log.broadcast.wake()
    found, seen = await tail.after(0, ALL)
    assert ([event.sequence for event in found], seen) == ([1, 2, 3, 4, 5], 5)
    log.add("a")
    found, seen = await tail.after(seen, ALL)
    assert ([event.sequence for event in found], seen) == ([6], 6)


async def test_who_comes_after_a_quiet_time_makes_nobody_read_what_happened_meanwhile() -> None:
    log = Log()
    tail = log.tail()
    await tail.after(0, ALL)
    for _ in range(20 * event_tail.KEPT):
        log.add("a")
    log.reads = 0
    assert await tail.after(len(log.events), ALL) == ([], len(log.events))
    assert log.reads <= 2


async def admitted() -> bool:
    return True


@pytest.mark.parametrize("what", ["commits", "progress"])
async def test_who_is_admitted_no_more_hears_nothing_more(what: str) -> None:
    log, revoked, got = Log(), asyncio.Event(), []
    log.add("a")

    async def until_revoked() -> bool:
        return not revoked.is_set()

    async def happens() -> None:
        while True:
            if what == "commits":
                log.add("a")
            else:
                log.broadcast.progress(PROGRESS)
            await asyncio.sleep(0)

    response = event_stream(log.broadcast, log.tail(), 0, ALL, asyncio.Event(), until_revoked)
    happening = asyncio.create_task(happens())
    async with asyncio.timeout(60):
        async for event in response.body_iterator:
            got.append(event.event)
            if len(got) == 3:
                revoked.set()
    happening.cancel()
    assert len(got) == 3


async def test_a_hundred_streams_read_each_commit_once() -> None:
    log, stopping = Log(), asyncio.Event()
    log.add("a")
    tail, got = log.tail(), []

    async def follow(which: EventFilter) -> None:
        response = event_stream(log.broadcast, tail, 1, which, stopping, admitted)
        async for event in response.body_iterator:
            if event.event != SO_FAR:
                got.append((which, event.id))

    streams = [asyncio.create_task(follow(which)) for which in FOLLOWED[:3] for _ in range(40)]
    await asyncio.sleep(0.05)
    log.reads = 0
    for number in range(2, 7):
        log.add("a")
        async with asyncio.timeout(60):
            while len(got) < 80 * (number - 1):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    stopping.set()
    log.broadcast.wake()
    await asyncio.gather(*streams)
    assert [which for which in FOLLOWED if any(which == each for each, _ in got)] == [FOLLOWED[0], ALL]
    assert (
        log.reads <= 5 * 4 + 10
    )  # each commit needs one read that finds it and one that finds no more; some a second look


@pytest.mark.parametrize("which", FOLLOWED)
async def test_a_stream_tells_once_when_all_events_so_far_have_come(which: EventFilter) -> None:
    log, got = Log(), []
    for number in range(2 * event_tail.BATCH + 1):
        log.add(JOBS[number % len(JOBS)])
    last = len(log.events)
    response = event_stream(log.broadcast, log.tail(), 0, which, asyncio.Event(), admitted)
    async with asyncio.timeout(60):
        async for event in response.body_iterator:
            got.append(event)
            if event.event == SO_FAR:
                log.add("a")
                log.add("b")
                log.add(None)
            elif int(event.id) > last:
                break
    marks = [place for place, event in enumerate(got) if event.event == SO_FAR]
    before = [event.sequence for event in log.events[:last] if which.admits(event)]
    assert len(marks) == 1
    assert json.loads(got[marks[0]].data) == {"number": last}
    assert [int(event.id) for event in got[: marks[0]]] == before
