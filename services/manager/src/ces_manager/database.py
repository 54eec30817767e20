"""The database as the service uses it: writes one after the other in a thread of their own, leases in another one,
reads beside them, and what followers of the state are told beside these."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Literal, TypeVar

from prometheus_client import Histogram

from ces_common.db import UNAVAILABLE, ReadTx, UnitOfWork, WriteTx
from ces_common.metrics import SHORT
from ces_manager.clock import Clock
from ces_manager.errors import Overloaded

T = TypeVar("T")
Kind = Literal["write", "lease", "read", "tell"]
TOOK = Histogram(
    "ces_database_transaction_seconds", "Time of one transaction, or a few in a row", ["kind"], buckets=SHORT
)
WAITED = Histogram("ces_database_wait_seconds", "Time until a transaction's turn came", ["kind"], buckets=SHORT)
READERS, TELLERS = 4, 2
MAX_WAITING = 256  # requests of users that wait for the writer, some seconds' work
MAX_WAITING_OF_ONE = 128  # who must not take everybody's turn
HANGS_S = 5.0  # a transaction that takes longer says that the database does not answer


class Database:
    """Runs transactions. ``on_commit`` callbacks run after each one that emitted events, and wake those who wait.

    Writers queue for the version row's lock anyway; one thread keeps them from filling the pool that reads need. Leases
    have a thread to themselves: nodes must not fall silent because users are busy.
    """

    def __init__(self, uow: UnitOfWork, clock: Clock | None = None) -> None:
        self.uow, self.clock = uow, clock or Clock()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._leases = ThreadPoolExecutor(1, thread_name_prefix="lease")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="read")
        self._tellers = ThreadPoolExecutor(TELLERS, thread_name_prefix="tell")
        self._requested: Counter[str] = Counter()  # writes that users wait for, by who asked
        self._callbacks: list[Callable[[], None]] = []
        self._numbers = count()
        self._running: dict[int, float] = {}  # transactions under way, and since when
        self._refused = False  # the last one found no database

    @property
    def answers(self) -> bool:
        """Whether the last transaction reached the database, and none hangs."""
        now = self.clock.steady()
        return not self._refused and all(now - since < HANGS_S for since in list(self._running.values()))

    def on_commit(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def committed(self) -> None:
        """Run the callbacks."""
        for callback in self._callbacks:
            callback()

    async def write(self, act: Callable[[WriteTx], T], actor: str | None = None) -> T:
        """Run ``act`` in a transaction under the version lock. Whatever it raises undoes all of it."""

        def transact() -> tuple[T, bool]:
            with self.uow.write(self.clock.now(), actor) as tx:
                before = tx.cluster().sequence
                result = act(tx)
                return result, tx.cluster().sequence != before

        result, emitted = await self.in_writer(transact)
        if emitted:
            self.committed()
        return result

    async def requested_write(self, act: Callable[[WriteTx], T], actor: str) -> T:
        """``write`` for a user, of whom there may be any number, and whom the events name. Raises Overloaded where too
        many wait already."""
        waiting = self._requested.total()
        if waiting >= MAX_WAITING or self._requested[actor] >= MAX_WAITING_OF_ONE:
            raise Overloaded(f"{waiting} requests are waiting to be written down; try again in a moment")
        self._requested[actor] += 1
        try:
            return await self.write(act, actor)
        finally:
            self._requested[actor] -= 1
            if not self._requested[actor]:
                del self._requested[actor]

    async def read(self, look: Callable[[ReadTx], T]) -> T:
        """Run ``look`` on a consistent view of the database."""

        return await self._run("read", self._readers, lambda: self._look(look))

    async def tell(self, look: Callable[[ReadTx], T]) -> T:
        """``read`` for those who follow the state: to tell all of it takes seconds, in which nobody else may wait."""
        return await self._run("tell", self._tellers, lambda: self._look(look))

    async def in_writer(self, call: Callable[[], T]) -> T:
        """Run a call that opens its own transactions in the writing thread."""
        return await self._run("write", self._writer, call)

    async def in_lease_writer(self, call: Callable[[], T]) -> T:
        """Run a call that renews leases, whatever else is being written."""
        return await self._run("lease", self._leases, call)

    def _look(self, look: Callable[[ReadTx], T]) -> T:
        with self.uow.read() as tx:
            return look(tx)

    async def _run(self, kind: Kind, threads: ThreadPoolExecutor, call: Callable[[], T]) -> T:
        loop, asked = asyncio.get_running_loop(), time.perf_counter()
        return await loop.run_in_executor(threads, self._observed, kind, asked, call)

    def _observed(self, kind: Kind, asked: float, call: Callable[[], T]) -> T:
        number, began = next(self._numbers), time.perf_counter()
        WAITED.labels(kind).observe(began - asked)
        self._running[number] = self.clock.steady()
        try:
            result = call()
        except UNAVAILABLE:
            self._refused = True
            raise
        finally:
            del self._running[number]
            TOOK.labels(kind).observe(time.perf_counter() - began)
        self._refused = False
        return result

    def close(self) -> None:
        self._writer.shutdown()
        self._leases.shutdown()
        self._readers.shutdown()
        self._tellers.shutdown()
