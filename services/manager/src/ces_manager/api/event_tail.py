"""The last events, read from the database once for all streams that have seen those before."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from ces_common.db.outbox import ALL, EventFilter, StoredEvent
from ces_manager.broadcast import Broadcast

BATCH = 200
KEPT = 500  # events
LOOK_S = 1.0  # after which what another manager may have committed is looked for
ReadEvents = Callable[[int, EventFilter, int], Awaitable[list[StoredEvent]]]  # after, which, limit
Latest = Callable[[], Awaitable[int]]


class EventTail:
    def __init__(self, read: ReadEvents, latest: Latest, broadcast: Broadcast) -> None:
        self._read, self._latest, self._broadcast = read, latest, broadcast
        self._kept: deque[StoredEvent] = deque()
        self._before = 0  # all events above it are kept, up to the last
        self._last: int | None = None
        self._looked: tuple[int, float] | None = None  # at the last look: commits so far, and when it was
        self._lock = asyncio.Lock()

    async def after(self, seen: int, which: EventFilter) -> tuple[list[StoredEvent], int]:
        """Some of these events above number ``seen``, in order; and the number up to which there is no other. No events
        where there is none yet."""
        last = await self.latest()
        if seen >= self._before:
            found = [event for event in self._kept if event.sequence > seen and which.admits(event)]
            return found, max(seen, last)
        found = await self._read(seen, which, BATCH)
        return found, max(found[-1].sequence if found else seen, last if len(found) < BATCH else 0)

    async def latest(self) -> int:
        """The number of the last event now; 0 where there is none."""
        async with self._lock:
            commits, now = self._broadcast.commits, time.monotonic()
            looked = self._looked
            if self._last is not None and looked is not None and looked[0] == commits and now - looked[1] < LOOK_S:
                return self._last
            latest = await self._latest()
            # Fewer than before: a standby was promoted. Many more: nobody has looked for long.
            if self._last is None or latest < self._last or latest - self._last > KEPT:
                self._kept.clear()
                self._before = self._last = latest
            while self._last < latest and (events := await self._read(self._last, ALL, BATCH)):
                self._kept.extend(events)
                self._last = events[-1].sequence
                while len(self._kept) > KEPT:
                    self._before = self._kept.popleft().sequence
            self._looked = commits, now
            return self._last
