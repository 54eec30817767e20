"""A durable pull consumer that keeps going: through reconnects, a deleted stream, even a wiped broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import nats.js.errors
import structlog
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from prometheus_client import Counter, Gauge

from ces_common import subjects
from ces_common.bus.nats_connection import NatsConnection
from ces_common.bus.nats_errors import translated
from ces_common.bus.nats_subscription import LastingSubscription
from ces_common.bus.port import (
    DEAD_DELIVERIES,
    DEAD_DURABLE,
    DEAD_REASON,
    DEAD_SUBJECT,
    HANDLED,
    AccessRefused,
    BusError,
    BusUnavailable,
    Delivery,
    FactHandler,
    Reject,
    Retry,
    backoff_s,
)

log = structlog.get_logger(__name__)

LINGER_S: Final = 30.0
HEARTBEAT_S: Final = 5.0
ANSWER_S: Final = 5.0
LOOKS: Final = 3  # in the time after which the broker takes a message for lost
MESSAGE_ID: Final = "Nats-Msg-Id"
_SECOND: Final = 1_000_000_000
STREAM_NOT_FOUND: Final = 10059
PENDING: Final = Gauge("ces_consumer_pending_messages", "Messages not handled yet, as of the last look", ["consumer"])
HANDLING: Final = Gauge("ces_consumer_handling_seconds", "How long one message has been worked on by now", ["consumer"])
BURIED: Final = Counter("ces_dead_letters_total", "Messages given up, and kept as dead letters", ["consumer"])

StoreDead = Callable[[str, bytes, str, dict[str, str]], Awaitable[None]]


class _Lost(BusError):
    """The consumer, its stream or the pull is gone: bind again."""


class PullConsumer:
    def __init__(
        self,
        connection: NatsConnection,
        js: Callable[[], JetStreamContext],
        provision: Callable[[], Awaitable[None]],
        store_dead: StoreDead,
        *,
        durable: str,
        filters: list[str],
        handler: FactHandler,
        max_deliver: int,
        ack_wait: float,
        batch: int,
    ) -> None:
        self._connection = connection
        self._js = js
        self._provision = provision
        self._store_dead = store_dead
        self._durable = durable
        self._stream = subjects.stream_of(filters[0])
        self._filters = filters
        self._handler = handler
        self._max_deliver = max_deliver
        self._ack_wait = ack_wait
        self._batch = batch
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()  # bounded by what was asked for
        self._inbox = ""
        self._subscription: LastingSubscription | None = None
        self._pulls = 0
        self._closing = False
        self._began: float | None = None  # when the message that is handled now was begun with
        BURIED.labels(durable)
        HANDLING.labels(durable).set_function(self._handling_s)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Bind once before returning, so that a missing right shows at once. Raises AccessRefused."""
        self._inbox = self._connection.client.new_inbox()
        self._subscription = await self._connection.subscribe(f"{self._inbox}.*", self._on_message)
        self._connection.on_reconnect(self._on_reconnect)
        bound = False
        try:
            await self._bind()
            bound = True
        except BusUnavailable as error:
            log.warning("consumer waits", durable=self._durable, error=str(error))
        self._task = asyncio.create_task(self._run(bound))

    async def close(self) -> None:
        self._closing = True
        while self._task is not None and not self._task.done():  # the library may swallow a cancellation
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=0.5)
        if self._subscription is not None:
            await self._subscription.close()

    async def _on_message(self, msg: Msg) -> None:
        self._arrived.put_nowait(msg)

    async def _on_reconnect(self) -> None:
        if not self._closing:
            self._arrived.put_nowait(None)  # the pull that was out is lost

    async def _run(self, bound: bool) -> None:
        failures = 0
        while not self._closing:
            try:
                await self._connection.wait_connected()
                if not bound:
                    await self._bind()
                    bound = True
                messages = await self._pull(self._batch, linger=False) or await self._pull(1, linger=True)
                failures = 0
                await self._handle_all(messages)
            except Exception as error:  # nothing may end it but close()
                bound = False
                failures += 1
                if not isinstance(error, BusError):
                    log.exception("consumer failed; starting over", durable=self._durable)
                elif failures > 1:
                    log.warning("consumer waits", durable=self._durable, error=str(error))
                if failures > 1:
                    await asyncio.sleep(min(5.0, backoff_s(failures - 1)))

    async def _bind(self) -> None:
        """Make the consumer or correct its configuration; the stream too where that is missing and we may."""
        with translated(self._stream):
            try:
                await self._add_consumer()
            except nats.js.errors.NotFoundError as error:
                if error.err_code != STREAM_NOT_FOUND:
                    raise
                try:
                    await self._provision()
                except AccessRefused:
                    raise BusUnavailable(f"the stream {self._stream} does not exist yet") from error
                await self._add_consumer()

    async def _add_consumer(self) -> None:
        request = f"$JS.API.CONSUMER.CREATE.{self._stream}.{self._durable}"
        with self._connection.refusal("publish", request) as refused:
            adding = asyncio.ensure_future(
                self._js().add_consumer(
                    self._stream,
                    api.ConsumerConfig(
                        name=self._durable,
                        durable_name=self._durable,
                        filter_subjects=self._filters,
                        deliver_policy=api.DeliverPolicy.ALL,
                        ack_policy=api.AckPolicy.EXPLICIT,
                        ack_wait=self._ack_wait,
                        # Counted here, not there: the server would drop the last one without a dead letter.
                        max_deliver=-1,
                        max_ack_pending=max(256, 4 * self._batch),
                    ),
                )
            )
            await self._connection.first(adding, refused, f"may not consume {self._stream} as {self._durable}")

    async def _pull(self, count: int, *, linger: bool) -> list[Msg]:
        """Up to ``count`` stored messages or, with ``linger``, the next one to come. Raises _Lost."""
        self._pulls += 1
        reply = f"{self._inbox}.{self._pulls}"
        request: dict[str, object] = {"batch": count}
        if linger:
            request |= {"expires": int(LINGER_S * _SECOND), "idle_heartbeat": int(HEARTBEAT_S * _SECOND)}
        else:
            request["no_wait"] = True
        await self._connection.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._durable}",
            json.dumps(request).encode(),
            reply=reply,
        )
        messages: list[Msg] = []
        while len(messages) < count:
            try:
                async with asyncio.timeout(2.5 * HEARTBEAT_S if linger else ANSWER_S):
                    msg = await self._arrived.get()
            except TimeoutError as error:
                if messages:
                    break
                raise _Lost("the broker does not answer a pull") from error
            if msg is None:
                if messages:
                    break
                raise _Lost("reconnected")
            status = (msg.headers or {}).get("Status")
            if status is None:
                messages.append(msg)
            elif status != "100" and msg.subject == reply:
                if messages or status in ("404", "408"):
                    break
                raise _Lost(f"pull ended: {status} {(msg.headers or {}).get('Description', '')}")
        return messages

    async def _handle_all(self, messages: list[Msg]) -> None:
        waiting, behind = deque(messages), messages[-1].metadata.num_pending if messages else 0
        keeper = asyncio.create_task(self._keep(waiting))
        try:
            while waiting:
                PENDING.labels(self._durable).set(behind + len(waiting))
                self._began = time.monotonic()
                await self._handle(waiting.popleft())
            PENDING.labels(self._durable).set(behind)
        finally:
            self._began = None
            keeper.cancel()
            for msg in waiting:
                await self._answer(msg.nak())

    async def _keep(self, waiting: deque[Msg]) -> None:
        """Tell the broker that messages which wait behind a slow one are not lost."""
        while True:
            await asyncio.sleep(self._ack_wait / LOOKS)
            for msg in list(waiting):
                await self._answer(msg.in_progress())

    async def _handle(self, msg: Msg) -> None:
        metadata = msg.metadata
        headers = msg.headers or {}
        message_id = headers.get(MESSAGE_ID) or f"{metadata.stream}-{metadata.sequence.stream}"
        count = metadata.num_delivered
        if count > self._max_deliver:
            await self._bury(msg, message_id, count, f"unanswered after {count - 1} deliveries")
            return
        try:
            await self._call(msg, Delivery(msg.subject, msg.data, headers, message_id, count))
        except asyncio.CancelledError:
            await self._answer(msg.nak())
            raise
        except Reject as error:
            await self._bury(msg, message_id, count, f"rejected: {error}")
        except Exception as error:
            if count >= self._max_deliver:
                log.exception("handler failed for the last time", durable=self._durable, subject=msg.subject)
                await self._bury(msg, message_id, count, f"{type(error).__name__}: {error}")
            else:
                log.exception("handler failed", durable=self._durable, subject=msg.subject, deliveries=count)
                await self._answer(msg.nak(backoff_s(count)))
        else:
            await self._answer(msg.ack())

    async def _call(self, msg: Msg, delivery: Delivery) -> None:
        """Call the handler until it can work."""
        while True:
            keeper = asyncio.create_task(self._keep_handled(msg))
            try:
                return await self._handler(delivery)
            except Retry as retry:
                log.warning("fact waits", durable=self._durable, subject=msg.subject, reason=str(retry))
                await self._answer(msg.in_progress())
                await asyncio.sleep(retry.delay_s)
            finally:
                keeper.cancel()

    async def _keep_handled(self, msg: Msg) -> None:
        """Tell the broker that a message is not lost, for as long as a handler may take."""
        for _ in range(LOOKS * HANDLED - 1):
            await asyncio.sleep(self._ack_wait / LOOKS)
            await self._answer(msg.in_progress())

    async def _bury(self, msg: Msg, message_id: str, count: int, reason: str) -> None:
        BURIED.labels(self._durable).inc()
        log.error("dead letter", durable=self._durable, subject=msg.subject, id=message_id, reason=reason)
        if self._stream != subjects.DEAD_STREAM:
            kept = {key: value for key, value in (msg.headers or {}).items() if not key.startswith("Nats-")}
            headers = kept | {
                DEAD_REASON: reason[:1000],
                DEAD_SUBJECT: msg.subject,
                DEAD_DURABLE: self._durable,
                DEAD_DELIVERIES: str(count),
            }
            try:
                await self._store_dead(
                    subjects.dead_letter(self._durable), msg.data, f"{self._durable}.{message_id}", headers
                )
            except BusError as error:
                log.warning("dead letter not stored, will come again", subject=msg.subject, error=str(error))
                await self._answer(msg.nak(backoff_s(count)))
                return
        await self._answer(msg.term())

    def _handling_s(self) -> float:
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    async def _answer(self, sending: Awaitable[None]) -> None:
        """An answer that gets lost costs a redelivery, no more."""
        with suppress(BusUnavailable), translated(self._durable):
            await sending
