"""Server-sent events: every committed event by its number, so that a client resumes where it left off; progress and
measurements beside them, unnumbered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from sse_starlette import EventSourceResponse, ServerSentEvent

from ces_common.db.outbox import StoredEvent
from ces_common.messages.reports import Progress

BATCH = 200
LOOK_S = 1.0
PING_S = 15
QUEUED = 256
LONGEST_NUMBER = 18  # digits; what the database can compare with

ReadEvents = Callable[[int, str | None, int], Awaitable[list[StoredEvent]]]  # after, job, limit


class Bell:
    """Wakes every stream after a commit, and hands out progress as it comes."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[Progress | None]] = set()

    def ring(self) -> None:
        self._tell(None)

    def progress(self, progress: Progress) -> None:
        self._tell(progress)

    def _tell(self, what: Progress | None) -> None:
        for queue in self._listeners:
            if not queue.full():  # a slow reader misses progress; events it reads from the database
                queue.put_nowait(what)

    async def listen(self, timeout_s: float) -> AsyncIterator[Progress | None]:
        """What was told meanwhile; None for a commit or when nothing was told within the timeout."""
        queue: asyncio.Queue[Progress | None] = asyncio.Queue(QUEUED)
        self._listeners.add(queue)
        try:
            while True:
                try:
                    yield await asyncio.wait_for(queue.get(), timeout_s)
                except TimeoutError:
                    yield None
        finally:
            self._listeners.discard(queue)


def event_stream(
    bell: Bell, read: ReadEvents, after: int, job: str | None, stopping: asyncio.Event
) -> EventSourceResponse:
    """The events after a number, then those to come, until the client leaves or the manager stops."""

    async def body() -> AsyncIterator[ServerSentEvent]:
        last = after
        async for told in _first_look(bell):
            if stopping.is_set():
                return
            if told is not None:
                if job is None or told.job == job:
                    yield ServerSentEvent(event="progress", data=told.model_dump_json())
                continue
            while events := await read(last, job, BATCH):
                for event in events:
                    last = event.sequence
                    yield ServerSentEvent(id=str(event.sequence), event=event.type, data=event.body.decode())

    return EventSourceResponse(body(), ping=PING_S, headers={"Cache-Control": "no-store"})


async def _first_look(bell: Bell) -> AsyncIterator[Progress | None]:
    yield None
    async for told in bell.listen(LOOK_S):
        yield told


def last_event_id(header: str | None, query: int | None) -> int:
    """Where to resume. Raises ValueError for what is no number of ours."""
    if header is None or header == "":
        return query or 0
    if not (header.isascii() and header.isdecimal() and len(header) <= LONGEST_NUMBER):
        raise ValueError("Last-Event-ID is no event number")
    return int(header)
