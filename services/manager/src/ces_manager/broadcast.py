"""Wakes all event streams after a commit, and passes workers' progress on to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ces_common.messages.reports import Progress

QUEUED = 256


class Broadcast:
    """One queue for each listener. A slow one misses progress, but no event: those it reads from the database."""

    def __init__(self) -> None:
        self.commits = 0  # since the start
        self._listeners: set[asyncio.Queue[Progress | None]] = set()

    def wake(self) -> None:
        self.commits += 1
        self._put(None)

    def progress(self, progress: Progress) -> None:
        self._put(progress)

    def _put(self, what: Progress | None) -> None:
        for queue in self._listeners:
            if not queue.full():
                queue.put_nowait(what)

    async def listen(self, timeout_s: float) -> AsyncIterator[Progress | None]:
        """Progress as it comes; None after a commit, and when nothing came within the timeout."""
        queue: asyncio.Queue[Progress | None] = asyncio.Queue(QUEUED)
        self._listeners.add(queue)
        try:
            while True:
                try:
                    async with asyncio.timeout(timeout_s):
                        progress = await queue.get()
                except TimeoutError:
                    progress = None
                yield progress
        finally:
            self._listeners.discard(queue)
