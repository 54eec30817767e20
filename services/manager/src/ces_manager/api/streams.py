"""Server-sent events: every committed event with its number, so that a client can resume after the last one it saw;
progress between them, without numbers, and once a word that all events so far have come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from sse_starlette import EventSourceResponse, ServerSentEvent

from ces_common.db.outbox import ALL, EventFilter
from ces_common.messages.reports import Progress
from ces_manager.api.event_tail import LOOK_S, EventTail
from ces_manager.api.parameters import LONGEST_NUMBER
from ces_manager.broadcast import Broadcast

PING_S = 15
SO_FAR = "so-far"


def event_stream(
    broadcast: Broadcast,
    tail: EventTail,
    after: int,
    which: EventFilter,
    stopping: asyncio.Event,
    admitted: Callable[[], Awaitable[bool]],
) -> EventSourceResponse:
    """The events after a number, then ``SO_FAR`` with the number of the last when the stream was opened, then those to
    come, until the client leaves, is ``admitted`` no more, or the manager stops. Progress says which job it is of, not
    whose: those who follow some tenants alone hear only that of a job that they name."""

    async def body() -> AsyncIterator[ServerSentEvent]:
        seen, last, told = after, await tail.latest(), False
        async for progress in _first_look(broadcast):
            if stopping.is_set() or not await admitted():
                return
            if progress is not None:
                if which == ALL or progress.job == which.job:
                    yield ServerSentEvent(event="progress", data=progress.model_dump_json())
                continue
            while True:
                events, seen = await tail.after(seen, which)
                for event in events:
                    if not await admitted():
                        return
                    yield ServerSentEvent(id=str(event.sequence), event=event.type, data=event.body)
                if not told and seen >= last:
                    told = True
                    yield ServerSentEvent(event=SO_FAR, data=json.dumps({"number": last}))
                if not events:
                    break

    return EventSourceResponse(body(), ping=PING_S, headers={"Cache-Control": "no-store"})


async def _first_look(broadcast: Broadcast) -> AsyncIterator[Progress | None]:
    yield None
    async for progress in broadcast.listen(LOOK_S):
        yield progress


def last_event_id(header: str | None, query: int | None) -> int:
    """Where to resume. Raises ValueError for what is no number of ours."""
    if header is None or header == "":
        return query or 0
    if not (header.isascii() and header.isdecimal() and len(header) <= LONGEST_NUMBER):
        raise ValueError("Last-Event-ID is no event number")
    return int(header)
