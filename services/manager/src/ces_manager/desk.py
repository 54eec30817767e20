"""Where transactions are run: writes one after the other in a thread of their own, reads beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TypeVar

from ces_common.db import ReadTx, UnitOfWork, WriteTx

T = TypeVar("T")
Clock = Callable[[], datetime]
READERS = 4


def utc_now() -> datetime:
    return datetime.now(UTC)


class Desk:
    """``on_commit`` callbacks run after each transaction that emitted events: they wake whoever waits for them.

    Writers queue for the version row's lock anyway; one thread keeps them from filling the pool that reads need.
    """

    def __init__(self, uow: UnitOfWork, clock: Clock = utc_now) -> None:
        self.uow, self.clock = uow, clock
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="read")
        self._callbacks: list[Callable[[], None]] = []

    def on_commit(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def committed(self) -> None:
        """Run the callbacks."""
        for callback in self._callbacks:
            callback()

    async def write(self, act: Callable[[WriteTx], T]) -> T:
        """Run ``act`` in a transaction under the version lock. Whatever it raises undoes all of it."""

        def transact() -> tuple[T, bool]:
            with self.uow.write(self.clock()) as tx:
                before = tx.cluster().sequence
                result = act(tx)
                return result, tx.cluster().sequence != before

        result, emitted = await self.in_writer(transact)
        if emitted:
            self.committed()
        return result

    async def read(self, look: Callable[[ReadTx], T]) -> T:
        """Run ``look`` on one moment of the database."""

        def transact() -> T:
            with self.uow.read() as tx:
                return look(tx)

        return await asyncio.get_running_loop().run_in_executor(self._readers, transact)

    async def in_writer(self, call: Callable[[], T]) -> T:
        """Run in the writing thread what opens its own transactions."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, call)

    def close(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
