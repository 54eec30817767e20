"""Batching: items that arrive while one batch is processed form the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Batcher(Generic[T, R]):
    """``work`` gets a batch and returns one result for each item; if it raises, every item's future does.
    ``gather_s``: how long the first item of a batch waits for others."""

    def __init__(self, work: Callable[[list[T]], Awaitable[list[R]]], gather_s: float) -> None:
        self._work, self._gather_s = work, gather_s
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._worker: asyncio.Task[None] | None = None

    def put(self, item: T) -> asyncio.Future[R]:
        """Add an item; the future brings its result."""
        result: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run())
        return result

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._gather_s)
            batch, self._waiting = self._waiting, []
            try:
                results = await self._work([item for item, _ in batch])
            except Exception as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
            else:
                for (_, future), result in zip(batch, results, strict=True):
                    if not future.done():
                        future.set_result(result)
