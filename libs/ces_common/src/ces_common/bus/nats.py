"""The bus on NATS with JetStream."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

import nats.js.errors
import structlog
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from ces_common import subjects as wire
from ces_common.at_once import at_once
from ces_common.bus.codec import LARGEST_DOCUMENT, PATIENCE, pack, pack_error, patience_of, unpack, unpack_reply
from ces_common.bus.lane import Lane, LaneSubscription
from ces_common.bus.nats_connection import NatsConnection
from ces_common.bus.nats_consumer import MESSAGE_ID, STREAM_NOT_FOUND, PullConsumer
from ces_common.bus.nats_errors import translated
from ces_common.bus.nats_streams import HasNoFolder, provision
from ces_common.bus.port import (
    DEFAULT_ACK_WAIT_S,
    DEFAULT_BATCH,
    DEFAULT_MAX_DELIVER,
    DEFAULT_TIMEOUT_S,
    LARGEST_ANSWER,
    LARGEST_REQUEST,
    AccessRefused,
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
    RequestHandler,
    Subscription,
    Superseded,
)
from ces_common.natsauth.credentials import Credentials

log = structlog.get_logger(__name__)

STORE_TIMEOUT_S: Final = 5.0
SERVED_AT_ONCE: Final = 32
OPERATION: Final = "KV-Operation"
EXPECTED_REVISION: Final = "Nats-Expected-Last-Subject-Sequence"
WRONG_REVISION: Final = 10071  # the server's error code


class NatsBus:
    """A Bus on one or several NATS servers (a cluster).

    ``name`` is the identity's name in its credentials: replies come to an inbox under it and nowhere else.
    ``replicas``: at least as many servers keep a copy of every stream that this client provisions. ``tls``: what the
    servers are checked by; None: connections are in the clear.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        *,
        name: str,
        credentials: Credentials | None = None,
        replicas: int = 1,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        addresses = [servers] if isinstance(servers, str) else list(servers)
        self._connection = NatsConnection(addresses, name=name, credentials=credentials, tls=tls)
        self._replicas = replicas
        self._provisioning = asyncio.Lock()
        self._seen: dict[str, bool] = {}  # streams, and whether they are sound
        self._consumers: list[PullConsumer] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._lanes: list[Lane] = []

    @property
    def connected(self) -> bool:
        return self._connection.connected

    async def connect(self, *, deadline_s: float | None = None) -> None:
        await self._connection.connect(deadline_s)

    async def close(self) -> None:
        for consumer in self._consumers:
            await consumer.close()
        self._consumers.clear()
        await self._connection.close(finishing=self._serving)
        for lane in self._lanes:
            await lane.close()
        self._lanes.clear()

    def on_reconnect(self, callback: Callback) -> None:
        self._connection.on_reconnect(callback)

    def on_refused(self, callback: Callback) -> None:
        """Call back whenever the broker does not let this identity in: its credentials have ended, say."""
        self._connection.on_refused(callback)

    async def use(self, credentials: Credentials) -> None:
        """Go on with other credentials of the same identity; neither messages nor subscriptions are lost. Raises
        AccessRefused, BusUnavailable, and then goes on with the former ones."""
        await self._connection.use(credentials)

    def _js(self) -> JetStreamContext:
        return self._connection.client.jetstream(timeout=STORE_TIMEOUT_S)

    # Facts

    async def provision(self) -> None:
        async with self._provisioning:  # the keeper of the streams and each reader may find that one is gone
            await self._provision()

    async def _provision(self) -> None:
        js = self._js()
        request = f"$JS.API.STREAM.INFO.{wire.EVENT_STREAM}"
        with self._connection.refusal("publish", request) as refused, translated("the streams"):
            making = asyncio.ensure_future(provision(js, self._replicas, self._seen))
            try:
                await self._connection.first(making, refused, "may not create the streams and the bucket")
            except HasNoFolder as error:
                raise BusError(str(error)) from error
            except (nats.js.errors.ServerError, nats.js.errors.BadRequestError) as error:
                asked = f"{self._replicas} replicas (CES_NATS_REPLICAS)"
                raise BusError(f"the broker does not keep the streams with {asked}: {error.description}") from error

    async def publish_fact(
        self, subject: str, data: bytes, *, message_id: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        wire.stream_of(subject)
        stored = await self._store(subject, data, {**(headers or {}), MESSAGE_ID: message_id})
        return not stored.get("duplicate", False)  # whether it is new

    async def _store(self, subject: str, data: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        """Publish to a stream and wait for its word; make the streams first if they are gone and we may."""
        try:
            return await self._store_once(subject, data, headers)
        except NoResponder as gone:
            log.warning("no stream stores this; provisioning", subject=subject)
            try:
                await self.provision()
                return await self._store_once(subject, data, headers)
            except (NoResponder, AccessRefused):
                raise BusUnavailable(f"no stream stores {subject}") from gone

    async def _store_once(self, subject: str, data: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        reply = await self._connection.request(subject, data, headers, STORE_TIMEOUT_S)
        return _stored(reply, subject)

    async def _store_dead(self, subject: str, data: bytes, message_id: str, headers: dict[str, str]) -> None:
        await self._store(subject, data, {**headers, MESSAGE_ID: message_id})

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
        consumer = PullConsumer(
            self._connection,
            self._js,
            self.provision,
            self._store_dead,
            durable=wire.token(durable, "durable name"),
            filters=subjects,
            handler=handler,
            max_deliver=max_deliver,
            ack_wait=ack_wait,
            batch=batch,
        )
        self._consumers.append(consumer)
        await consumer.start()
        return consumer

    # Messages that are not stored

    async def publish(self, subject: str, data: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        await self._connection.publish(subject, data, headers)

    async def subscribe(self, subject: str, handler: MessageHandler, *, queue: str | None = None) -> Subscription:
        async def on_message(msg: Msg) -> None:
            try:
                await handler(Message(msg.subject, msg.data, msg.headers or {}))
            except Exception:
                log.exception("message handler failed", subject=msg.subject)

        return await self._connection.subscribe(subject, on_message, queue=queue or "")

    async def request(
        self, subject: str, data: bytes = b"", *, timeout_s: float = DEFAULT_TIMEOUT_S, largest: int = LARGEST_ANSWER
    ) -> bytes:
        payload, headers = pack(data)
        reply = await self._connection.request(subject, payload, {**headers, PATIENCE: f"{timeout_s:g}"}, timeout_s)
        return unpack_reply(reply.data, reply.headers or {}, largest)

    async def serve(
        self, subject: str, handler: RequestHandler, *, largest: int = LARGEST_REQUEST, queue: str | None = None
    ) -> Subscription:
        slots = asyncio.Semaphore(SERVED_AT_ONCE)

        async def answer(msg: Msg) -> None:
            try:
                try:
                    headers = msg.headers or {}
                    result = await handler(Message(msg.subject, unpack(msg.data, headers, largest), headers))
                    data, marks = pack(result)
                    await self._connection.publish(msg.reply, data, marks)
                except Exception as error:
                    if not isinstance(error, BusError):
                        log.exception("request handler failed", subject=msg.subject)
                    data, marks = pack_error(error)
                    await self._connection.publish(msg.reply, data, marks)
            except BusError as error:
                log.warning("reply not sent", subject=msg.subject, error=str(error))
            finally:
                slots.release()

        async def on_request(msg: Msg) -> None:
            if not _answerable(msg):
                return
            await slots.acquire()
            task = asyncio.create_task(answer(msg))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

        return await self._connection.subscribe(subject, on_request, queue=queue or "")

    async def serve_latest(
        self, subject: str, handler: BatchHandler, *, largest: int, queue: str | None = None
    ) -> Subscription:
        lane = Lane(handler, largest)
        self._lanes.append(lane)

        async def on_request(msg: Msg) -> None:
            if not _answerable(msg):
                return

            async def answer(result: bytes | BaseException) -> None:
                data, marks = pack(result) if isinstance(result, bytes) else pack_error(result)
                try:
                    await self._connection.publish(msg.reply, data, marks)
                except BusError as error:
                    log.warning("reply not sent", subject=msg.subject, error=str(error))

            headers = msg.headers or {}
            await lane.offer(Message(msg.subject, msg.data, headers), patience_of(headers, DEFAULT_TIMEOUT_S), answer)

        return LaneSubscription(await self._connection.subscribe(subject, on_request, queue=queue or ""), lane)

    # Desired state

    async def kv_put(self, key: str, data: bytes, *, after: int | None = None) -> int:
        payload, marks = pack(data)
        expected = {} if after is None else {EXPECTED_REVISION: str(after)}
        stored = await self._store(wire.desired_subject(key), payload, {**marks, **expected})
        return int(stored["seq"])

    async def kv_delete(self, key: str) -> None:
        await self._store(wire.desired_subject(key), b"", {OPERATION: "DEL"})

    async def kv_entry(self, key: str) -> Entry:
        subject = wire.desired_subject(key)
        request = f"$JS.API.STREAM.MSG.GET.{wire.DESIRED_STREAM}"
        with self._connection.refusal("publish", request) as refused, translated(subject):
            reading = asyncio.ensure_future(self._js().get_last_msg(wire.DESIRED_STREAM, subject))
            try:
                stored = await self._connection.first(reading, refused, "may not read the desired state")
            except nats.js.errors.NotFoundError as error:
                if error.err_code == STREAM_NOT_FOUND:
                    raise BusUnavailable("the desired-state bucket does not exist yet") from error
                return Entry(None, 0)
        revision = stored.seq or 0
        try:
            return Entry(_value(stored.data or b"", stored.headers or {}), revision)
        except BusError as error:  # as good as none: the controller that keeps the key writes it again
            log.error("a desired-state key cannot be read", key=key, error=str(error))
            return Entry(None, revision)

    async def kv_get(self, key: str) -> bytes | None:
        return (await self.kv_entry(key)).value

    async def kv_keys(self, kind: str) -> list[str]:
        mine = f"{wire.DESIRED_PREFIX}.*.{wire.token(kind)}"
        with translated("the desired-state bucket"):
            info = await self._js().stream_info(wire.DESIRED_STREAM, subjects_filter=mine)
        keys = sorted(subject.removeprefix(f"{wire.DESIRED_PREFIX}.") for subject in info.state.subjects or {})
        values = await at_once(self.kv_get, keys)
        return [key for key, value in zip(keys, values, strict=True) if value is not None]  # a deleted one: a marker

    async def kv_subscribe(self, node: str, handler: KeyHandler) -> Subscription:
        async def on_message(msg: Msg) -> None:
            key = wire.parse_desired_change(msg.subject)
            try:
                await handler(key, _value(msg.data, msg.headers or {}))
            except Exception:
                log.exception("desired-state handler failed", key=key)

        return await self._connection.subscribe(wire.desired_changes(node), on_message)


def _answerable(msg: Msg) -> bool:
    """A requester could name any subject, and we may write to more of them than it may."""
    if msg.reply.startswith(wire.answered_to(msg.subject)):
        return True
    log.debug("request ignored: no inbox of the requester's to answer to", subject=msg.subject, reply=msg.reply)
    return False


def _value(data: bytes, headers: Mapping[str, str]) -> bytes | None:
    """Raises BusError if the message is not what its headers say."""
    return None if headers.get(OPERATION) in ("DEL", "PURGE") else unpack(data, headers, LARGEST_DOCUMENT)


def _stored(reply: Msg, subject: str) -> dict[str, Any]:
    """What the stream says of a message that it took in, or knew already. Raises BusError."""
    ack: dict[str, Any] = json.loads(reply.data)
    error = ack.get("error")
    if error is None:
        return ack
    text = f"{subject} was not stored: {error.get('description')} ({error.get('err_code')})"
    if error.get("err_code") == WRONG_REVISION:
        raise Superseded(text)
    raise BusUnavailable(text) if error.get("code") == 503 else BusError(text)
