"""What waits to be worked off where only the newest of each sender counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import structlog

log = structlog.get_logger(__name__)
T = TypeVar("T")

GATHER_S: Final = 0.02  # how long the first of a batch waits for others, to share their cost
MOST: Final = 65536
MOST_BYTES: Final = 128 * 1024 * 1024


class LatestBatches(Generic[T]):
    """Hands what was put to ``work``: all that waits at once, one batch after the other. Under each key only the newest
    waits. What does not fit any more is left out: whoever puts here repeats itself. ``work`` deals with its errors; one
    that it lets through is logged, and costs its batch."""

    def __init__(
        self, work: Callable[[list[T]], Awaitable[None]], *, most: int = MOST, most_bytes: int = MOST_BYTES
    ) -> None:
        self._work, self._most, self._most_bytes = work, most, most_bytes
        self._waiting: dict[str, tuple[T, int]] = {}
        self._bytes = 0
        self._worker: asyncio.Task[None] | None = None

    def put(self, key: str, item: T, size: int = 0) -> bool:
        """``size``: the bytes that it holds in memory. False where it found no room."""
        _, before = self._waiting.get(key, (None, 0))
        if self._bytes - before + size > self._most_bytes or (
            key not in self._waiting and len(self._waiting) >= self._most
        ):
            return False
        self._waiting[key] = (item, size)
        self._bytes += size - before
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run())
        return True

    async def close(self) -> None:
        """Forget what waits, and stop."""
        self._waiting, self._bytes = {}, 0
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait({self._worker})

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER_S)
            batch, self._waiting, self._bytes = self._waiting, {}, 0
            try:
                await self._work([item for item, _ in batch.values()])
            except Exception:  # else the worker would end, and what comes next would wait for good
                log.exception("a batch failed", items=len(batch))
