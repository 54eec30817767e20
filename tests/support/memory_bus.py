"""The bus in memory: the same promises as on NATS, without a broker.

Clients that share a MemoryBroker hear each other. Nothing is refused for want of rights, nothing is ever lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import structlog
from memory_stream import MemoryConsumer, Stored, Stream

from ces_common import subjects as wire
from ces_common.bus.lane import Lane
from ces_common.bus.port import (
    DEFAULT_ACK_WAIT_S,
    DEFAULT_BATCH,
    DEFAULT_MAX_DELIVER,
    DEFAULT_TIMEOUT_S,
    LARGEST_ANSWER,
    LARGEST_REQUEST,
    BatchHandler,
    BusError,
    BusUnavailable,
    Callback,
    Entry,
    FactHandler,
    KeyHandler,
    Message,
    MessageHandler,
    NoResponder,
    PayloadTooLarge,
    RemoteError,
    RequestHandler,
    RequestTimeout,
    Subscription,
    Superseded,
)

log = structlog.get_logger(__name__)

MAX_PAYLOAD: Final = 8 * 1024 * 1024
PENDING_MESSAGES: Final = 16384
SERVED_AT_ONCE: Final = 32
CLOSING_S: Final = 3.0
matches = lru_cache(65536)(wire.matches)  # each message is compared with each listener

Deliver = Callable[[Message], None]


class _Listener:
    def __init__(self, broker: MemoryBroker, pattern: str, queue: str | None, deliver: Deliver) -> None:
        self.pattern = pattern
        self.queue = queue
        self.deliver = deliver
        self._broker = broker

    def remove(self) -> None:
        if self in self._broker.listeners:
            self._broker.listeners.remove(self)


class MemoryBroker:
    """What the clients share: who listens, what is stored."""

    def __init__(self) -> None:
        self.listeners: list[_Listener] = []
        self.responders: list[_Responder | _LaneResponder] = []
        self.streams = {name: Stream(name) for name in (wire.EVENT_STREAM, wire.DEAD_STREAM)}
        self.bucket: dict[str, bytes] = {}
        self._revisions: dict[str, tuple[int, bytes | None]] = {}
        self._changes = 0
        self._turn = 0

    def revision(self, key: str) -> int:
        """Also of what a test has put into the bucket or taken from it by hand."""
        value = self.bucket.get(key)
        number, known = self._revisions.get(key, (0, None))
        return number if value is known else self.changed(key)

    def changed(self, key: str) -> int:
        self._changes += 1
        self._revisions[key] = self._changes, self.bucket.get(key)
        return self._changes

    def route(self, message: Message) -> None:
        """To every listener, but to one member of each queue, in turn."""
        groups: dict[str, list[_Listener]] = {}
        for listener in list(self.listeners):
            if matches(listener.pattern, message.subject):
                if listener.queue is None:
                    listener.deliver(message)
                else:
                    groups.setdefault(listener.queue, []).append(listener)
        self._turn += 1
        for members in groups.values():
            members[self._turn % len(members)].deliver(message)

    def responder(self, subject: str) -> _Responder | _LaneResponder | None:
        those = [each for each in self.responders if matches(each.pattern, subject)]
        self._turn += 1
        return those[self._turn % len(those)] if those else None

    def store(self, subject: str, data: bytes, message_id: str, headers: Mapping[str, str]) -> bool:
        return self.streams[wire.stream_of(subject)].add(Stored(subject, data, dict(headers), message_id))


class _Listening:
    """A listener with its queue and the task that empties it in order."""

    def __init__(self, broker: MemoryBroker, pattern: str, queue: str | None, handler: MessageHandler) -> None:
        self._waiting: asyncio.Queue[Message] = asyncio.Queue(PENDING_MESSAGES)
        self._handler = handler
        self._listener = _Listener(broker, pattern, queue, self._arrive)
        broker.listeners.append(self._listener)
        self._task = asyncio.create_task(self._run())

    def _arrive(self, message: Message) -> None:
        try:
            self._waiting.put_nowait(message)
        except asyncio.QueueFull:
            log.warning("bus messages dropped: handler too slow", subject=message.subject)

    async def _run(self) -> None:
        while True:
            message = await self._waiting.get()
            try:
                await self._handler(message)
            except Exception:
                log.exception("message handler failed", subject=message.subject)
            finally:
                self._waiting.task_done()

    async def close(self) -> None:
        self._listener.remove()
        self._task.cancel()
        await asyncio.wait({self._task})

    async def drain(self) -> None:
        self._listener.remove()
        await asyncio.wait({asyncio.ensure_future(self._waiting.join())}, timeout=CLOSING_S)
        await self.close()


class _Responder:
    def __init__(self, broker: MemoryBroker, pattern: str, handler: RequestHandler) -> None:
        self.pattern = pattern
        self._broker = broker
        self._handler = handler
        self._slots = asyncio.Semaphore(SERVED_AT_ONCE)
        self._running: set[asyncio.Task[bytes]] = set()
        broker.responders.append(self)

    async def answer(self, message: Message, timeout_s: float) -> bytes:
        async with self._slots:
            task = asyncio.ensure_future(self._handler(message))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            try:
                return await asyncio.shield(task)  # a requester that gives up does not stop it
            except RemoteError:
                raise
            except Exception as error:
                if not isinstance(error, BusError):
                    log.exception("request handler failed", subject=message.subject)
                raise RemoteError("internal", f"{type(error).__name__}: {error}") from error

    async def close(self) -> None:
        if self in self._broker.responders:
            self._broker.responders.remove(self)

    async def drain(self) -> None:
        await self.close()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=CLOSING_S)
            for task in late:
                task.cancel()


class _LaneResponder:
    """Requests of which only the newest of each subject waits."""

    def __init__(self, broker: MemoryBroker, pattern: str, handler: BatchHandler, largest: int) -> None:
        self.pattern = pattern
        self._broker = broker
        self._lane = Lane(handler, largest, asyncio.get_running_loop().time)
        broker.responders.append(self)

    async def answer(self, message: Message, timeout_s: float) -> bytes:
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def answer(result: bytes | BaseException) -> None:
            if answered.done():
                return
            if isinstance(result, bytes):
                answered.set_result(result)
            else:
                answered.set_exception(result)

        await self._lane.offer(message, timeout_s, answer)
        return await answered

    async def close(self) -> None:
        if self in self._broker.responders:
            self._broker.responders.remove(self)
        await self._lane.close()

    drain = close


class MemoryBus:
    """A Bus whose broker is an object."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._connected = False
        self._open: list[_Listening | _Responder | _LaneResponder | MemoryConsumer] = []

    @property
    def connected(self) -> bool:
        return self._connected

    async def connect(self, *, deadline_s: float | None = None) -> None:
        self._connected = True

    async def close(self) -> None:
        for each in self._open:
            await each.drain()
        self._open.clear()
        self._connected = False

    def on_reconnect(self, callback: Callback) -> None:
        """Never called: this connection is never lost."""

    async def provision(self) -> None:
        self._check("provision", b"")

    async def publish_fact(
        self, subject: str, data: bytes, *, message_id: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        self._check(subject, data)
        self._broker.route(Message(subject, data, dict(headers or {})))
        return self._broker.store(subject, data, message_id, headers or {})

    async def consume(
        self,
        durable: str,
        subjects: list[str],
        handler: FactHandler,
        *,
        max_deliver: int = DEFAULT_MAX_DELIVER,
        ack_wait: float = DEFAULT_ACK_WAIT_S,
        batch: int = DEFAULT_BATCH,
    ) -> Subscription:
        self._check(durable, b"")
        stream = self._broker.streams[wire.stream_of(subjects[0])]
        durable = wire.token(durable, "durable name")
        position = stream.bind(durable, subjects)
        consumer = MemoryConsumer(position, handler, self._broker.store, max_deliver=max_deliver, ack_wait=ack_wait)
        self._open.append(consumer)
        return consumer

    async def publish(self, subject: str, data: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        self._check(subject, data)
        self._broker.route(Message(subject, data, dict(headers or {})))

    async def subscribe(self, subject: str, handler: MessageHandler, *, queue: str | None = None) -> Subscription:
        self._check(subject, b"")
        return self._keep(_Listening(self._broker, subject, queue, handler))

    async def request(
        self, subject: str, data: bytes = b"", *, timeout_s: float = DEFAULT_TIMEOUT_S, largest: int = LARGEST_ANSWER
    ) -> bytes:
        self._check(subject, data)
        responder = self._broker.responder(subject)
        if responder is None:
            raise NoResponder(f"nobody answers on {subject}")
        try:
            async with asyncio.timeout(timeout_s):
                answer = await responder.answer(Message(subject, data), timeout_s)
        except TimeoutError as error:
            raise RequestTimeout(f"no answer on {subject} in time") from error
        if len(answer) > largest:
            raise BusError(f"an answer of {len(answer)} bytes is more than the {largest} that are taken here")
        return answer

    async def serve(
        self, subject: str, handler: RequestHandler, *, largest: int = LARGEST_REQUEST, queue: str | None = None
    ) -> Subscription:
        self._check(subject, b"")
        responder = _Responder(self._broker, subject, handler)
        self._open.append(responder)
        return responder

    async def serve_latest(
        self, subject: str, handler: BatchHandler, *, largest: int, queue: str | None = None
    ) -> Subscription:
        self._check(subject, b"")
        responder = _LaneResponder(self._broker, subject, handler, largest)
        self._open.append(responder)
        return responder

    async def kv_put(self, key: str, data: bytes, *, after: int | None = None) -> int:
        subject = wire.desired_subject(key)
        self._check(subject, data)
        if after is not None and after != self._broker.revision(key):
            raise Superseded(f"{key} is not at {after}")
        self._broker.bucket[key] = data
        revision = self._broker.changed(key)
        self._broker.route(Message(wire.desired_change(key), data))
        return revision

    async def kv_entry(self, key: str) -> Entry:
        self._check(wire.desired_subject(key), b"")
        return Entry(self._broker.bucket.get(key), self._broker.revision(key))

    async def kv_get(self, key: str) -> bytes | None:
        return (await self.kv_entry(key)).value

    async def kv_delete(self, key: str) -> None:
        subject = wire.desired_subject(key)
        self._check(subject, b"")
        self._broker.bucket.pop(key, None)
        self._broker.changed(key)
        self._broker.route(Message(wire.desired_change(key), b"", {"KV-Operation": "DEL"}))

    async def kv_keys(self, kind: str) -> list[str]:
        self._check("kv", b"")
        return sorted(key for key in self._broker.bucket if key.endswith(f".{kind}"))

    async def kv_subscribe(self, node: str, handler: KeyHandler) -> Subscription:
        async def on_message(message: Message) -> None:
            deleted = "KV-Operation" in message.headers
            await handler(wire.parse_desired_change(message.subject), None if deleted else message.data)

        self._check(node, b"")
        return self._keep(_Listening(self._broker, wire.desired_changes(node), None, on_message))

    def _keep(self, listening: _Listening) -> _Listening:
        self._open.append(listening)
        return listening

    def _check(self, subject: str, data: bytes) -> None:
        if not self._connected:
            raise BusUnavailable("not connected to the message broker")
        if len(data) > MAX_PAYLOAD:
            raise PayloadTooLarge(subject, len(data), MAX_PAYLOAD)
