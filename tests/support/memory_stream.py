"""Streams and durable consumers of the bus in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import structlog

from ces_common import subjects as wire
from ces_common.bus.port import (
    DEAD_DELIVERIES,
    DEAD_DURABLE,
    DEAD_REASON,
    DEAD_SUBJECT,
    HANDLED,
    Delivery,
    FactHandler,
    Reject,
    Retry,
    backoff_s,
)

log = structlog.get_logger(__name__)

Store = Callable[[str, bytes, str, Mapping[str, str]], bool]


@dataclass(frozen=True, slots=True)
class Stored:
    subject: str
    data: bytes
    headers: dict[str, str]
    message_id: str


class Stream:
    """Everything stored under one name, in order; positions by durable name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._messages: list[Stored] = []
        self._ids: set[str] = set()
        self._positions: dict[str, Position] = {}

    def add(self, message: Stored) -> bool:
        if message.message_id in self._ids:
            return False
        self._ids.add(message.message_id)
        self._messages.append(message)
        for position in self._positions.values():
            position.offer(message)
        return True

    def bind(self, durable: str, filters: list[str]) -> Position:
        position = self._positions.get(durable)
        if position is None:
            position = self._positions[durable] = Position(self.name, durable, filters)
            for message in self._messages:
                position.offer(message)
        position.filters = filters
        return position


@dataclass(slots=True, eq=False)
class Pending:
    message: Stored
    deliveries: int = 0
    done: bool = False
    timer: asyncio.TimerHandle | None = None


class Position:
    """What a durable consumer still has to handle; shared by the clients that use the name."""

    def __init__(self, stream: str, durable: str, filters: list[str]) -> None:
        self.stream = stream
        self.durable = durable
        self.filters = filters
        self._ready: deque[Pending] = deque()
        self._wake = asyncio.Event()

    def offer(self, message: Stored) -> None:
        if any(wire.matches(pattern, message.subject) for pattern in self.filters):
            self._put(Pending(message))

    async def take(self, patience_s: float) -> Pending:
        """The next one to handle; it comes again if it is not answered within ``patience_s``."""
        while not self._ready:
            self._wake.clear()
            await self._wake.wait()
        pending = self._ready.popleft()
        pending.deliveries += 1
        self.in_progress(pending, patience_s)
        return pending

    def in_progress(self, pending: Pending, patience_s: float) -> None:
        self._settle(pending)
        pending.timer = asyncio.get_running_loop().call_later(patience_s, self._put, pending)

    def again(self, pending: Pending, delay_s: float) -> None:
        self._settle(pending)
        if delay_s > 0:
            pending.timer = asyncio.get_running_loop().call_later(delay_s, self._put, pending)
        else:
            self._put(pending)

    def finish(self, pending: Pending) -> None:
        self._settle(pending)
        pending.done = True
        with suppress(ValueError):
            self._ready.remove(pending)

    def _settle(self, pending: Pending) -> None:
        if pending.timer is not None:
            pending.timer.cancel()
            pending.timer = None

    def _put(self, pending: Pending) -> None:
        if not pending.done and pending not in self._ready:
            self._ready.append(pending)
            self._wake.set()


class MemoryConsumer:
    """One client's share of the work on a position."""

    def __init__(
        self, position: Position, handler: FactHandler, store: Store, *, max_deliver: int, ack_wait: float
    ) -> None:
        self._position = position
        self._handler = handler
        self._store = store
        self._max_deliver = max_deliver
        self._patience_s = HANDLED * ack_wait  # also where its process dies, which a broker notices sooner
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def drain(self) -> None:
        await self.close()

    async def _run(self) -> None:
        while True:
            await self._handle(await self._position.take(self._patience_s))

    async def _handle(self, pending: Pending) -> None:
        message, count = pending.message, pending.deliveries
        if count > self._max_deliver:
            self._bury(pending, f"unanswered after {count - 1} deliveries")
            return
        try:
            await self._call(
                pending, Delivery(message.subject, message.data, message.headers, message.message_id, count)
            )
        except asyncio.CancelledError:
            self._position.again(pending, 0)
            raise
        except Reject as error:
            self._bury(pending, f"rejected: {error}")
        except Exception as error:
            if count >= self._max_deliver:
                self._bury(pending, f"{type(error).__name__}: {error}")
            else:
                log.exception("handler failed", durable=self._position.durable, subject=message.subject)
                self._position.again(pending, backoff_s(count))
        else:
            self._position.finish(pending)

    async def _call(self, pending: Pending, delivery: Delivery) -> None:
        while True:
            try:
                return await self._handler(delivery)
            except Retry as retry:
                self._position.in_progress(pending, self._patience_s)
                await asyncio.sleep(retry.delay_s)

    def _bury(self, pending: Pending, reason: str) -> None:
        message, durable = pending.message, self._position.durable
        log.error("dead letter", durable=durable, subject=message.subject, id=message.message_id, reason=reason)
        if self._position.stream != wire.DEAD_STREAM:
            headers = message.headers | {
                DEAD_REASON: reason[:1000],
                DEAD_SUBJECT: message.subject,
                DEAD_DURABLE: durable,
                DEAD_DELIVERIES: str(pending.deliveries),
            }
            self._store(wire.dead_letter(durable), message.data, f"{durable}.{message.message_id}", headers)
        self._position.finish(pending)
