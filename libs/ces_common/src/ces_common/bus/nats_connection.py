"""One lasting connection to NATS: waits for the broker, comes back after any loss, keeps its subscriptions.

The client library reconnects by itself after a broken connection, but closes for good on most errors that a server
reports (connection limits, an expired account, a protocol error). It then starts a fresh client and
subscribes everything again. It also turns the library's asynchronous permission errors into an answer for the
operation that caused them.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import nats.errors
import structlog
from nats.aio.client import Client, RawCredentials, Server
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from ces_common import subjects
from ces_common.bus.nats_client import TolerantClient
from ces_common.bus.nats_errors import check_size, translated
from ces_common.bus.port import (
    AccessRefused,
    BusError,
    BusUnavailable,
    Callback,
)
from ces_common.natsauth.credentials import Credentials, credentials_file

log = structlog.get_logger(__name__)

MAX_RECONNECT_WAIT_S: Final = 5.0
PING_EVERY_S: Final = 5  # with two unanswered pings a silent loss is noticed within 15 s
DRAIN_S: Final = 3.0
FLUSH_S: Final = 10
PENDING_MESSAGES: Final = 16384
PENDING_BYTES: Final = 64 * 1024 * 1024

_REFUSED = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')
_AUTH = ("authorization violation", "authentication", "user authentication revoked")

RawHandler = Callable[[Msg], Awaitable[None]]


class LastingSubscription:
    """A subscription that outlives the client it was made with."""

    def __init__(self, connection: NatsConnection, subject: str, queue: str, handler: RawHandler) -> None:
        self.subject = subject
        self.queue = queue
        self.handler = handler
        self.current: NatsSubscription | None = None
        self._connection = connection

    async def close(self) -> None:
        await self._connection.unsubscribe(self)


class NatsConnection:
    def __init__(self, servers: Sequence[str], *, name: str, credentials: Credentials | None = None) -> None:
        self._servers = list(servers)
        self._name = name
        self._credentials = credentials
        self._inbox_prefix = subjects.inbox_prefix(name)
        self._client: Client | None = None
        self._subscriptions: list[LastingSubscription] = []
        self._callbacks: list[Callback] = []
        self._waiters: dict[asyncio.Future[None], tuple[str, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._up = asyncio.Event()
        self._closing = False
        self._quiet_until: dict[str, float] = {}

    @property
    def connected(self) -> bool:
        return self._client is not None and self._client.is_connected

    @property
    def client(self) -> Client:
        """The connected client. Raises BusUnavailable."""
        if self._client is None or not self.connected:
            raise BusUnavailable("not connected to the message broker")
        return self._client

    async def wait_connected(self) -> None:
        while not self.connected:
            self._up.clear()
            await self._up.wait()

    def on_reconnect(self, callback: Callback) -> None:
        self._callbacks.append(callback)

    async def connect(self, deadline_s: float | None) -> None:
        try:
            async with asyncio.timeout(deadline_s):
                client = await self._first_connection(stop_when_refused=True)
        except TimeoutError as error:
            where = ", ".join(self._servers)
            raise BusUnavailable(f"no message broker at {where} within {deadline_s} s") from error
        self._adopt(client)

    def _adopt(self, client: Client) -> None:
        self._client = client
        if client.is_closed:  # closed again before anybody could notice
            self._spawn(self._revive())
        else:
            self._up.set()

    async def _first_connection(self, *, stop_when_refused: bool) -> Client:
        wait_s = 0.1
        while True:
            try:
                return await self._attempt()
            except AccessRefused as error:
                if stop_when_refused:
                    raise
                self._say("refused", "the message broker refuses this identity", error=str(error))
            except BusUnavailable as error:
                self._say("unreachable", "waiting for the message broker", servers=self._servers, error=str(error))
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))
            wait_s = min(MAX_RECONNECT_WAIT_S, wait_s * 2)

    async def _attempt(self) -> Client:
        """One try of each server. The library itself would go on for ever, also with refused credentials."""
        client = TolerantClient()
        errors: list[Exception] = []
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        established = False

        async def on_error(error: Exception) -> None:
            if established:
                self._on_error(error)
                return
            errors.append(error)
            if len(errors) >= len(self._servers) and not failed.done():
                failed.set_result(None)

        async def on_reconnected() -> None:
            log.info("bus reconnected", name=self._name)
            self._came_back()

        async def on_disconnected() -> None:
            if not self._closing:
                log.warning("bus disconnected", name=self._name)
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_exception(BusUnavailable("the message broker was lost before it answered"))

        async def on_closed() -> None:
            if not self._closing and client is self._client:
                self._spawn(self._revive())

        options: dict[str, Any] = {}
        if self._credentials is not None:
            options["user_credentials"] = RawCredentials(
                credentials_file(self._credentials.jwt, self._credentials.seed)
            )
        connecting = asyncio.create_task(
            client.connect(
                servers=self._servers,
                name=self._name,
                error_cb=on_error,
                reconnected_cb=on_reconnected,
                disconnected_cb=on_disconnected,
                closed_cb=on_closed,
                max_reconnect_attempts=-1,
                reconnect_time_wait=1,
                reconnect_to_server_handler=_next_server,
                ping_interval=PING_EVERY_S,
                inbox_prefix=self._inbox_prefix,
                **options,
            )
        )
        try:
            await asyncio.wait({connecting, failed}, return_when=asyncio.FIRST_COMPLETED)
            if connecting.done():
                if connecting.exception() is not None:  # by the library itself: a malformed address, for example
                    raise BusError(f"cannot connect to {self._servers}: {connecting.exception()}")
                if client.is_connected:
                    established = True
                    return client
        finally:
            if not established and not (connecting.done() and connecting.exception()):
                await _stop(connecting)
                await client.close()
        reason = errors[-1] if errors else ConnectionResetError("the broker closed the connection at once")
        if any(word in str(reason).lower() for word in _AUTH):
            raise AccessRefused(f"the message broker refuses this identity: {reason}")
        raise BusUnavailable(str(reason) or type(reason).__name__)

    async def _revive(self) -> None:
        log.warning("bus connection closed by the broker; starting over", name=self._name)
        self._client = None
        client = await self._first_connection(stop_when_refused=False)
        try:
            for subscription in list(self._subscriptions):
                subscription.current = await self._subscribe(client, subscription)
        except nats.errors.Error as error:
            log.warning("bus lost again while subscribing", name=self._name, error=str(error))
        self._adopt(client)
        if not client.is_closed:
            self._came_back()

    def _came_back(self) -> None:
        self._up.set()
        for callback in self._callbacks:
            self._spawn(_logged(callback))

    def _on_error(self, error: Exception) -> None:
        match = _REFUSED.search(str(error).lower())
        if match:
            for waiter, refused in list(self._waiters.items()):
                if refused == match.groups() and not waiter.done():
                    waiter.set_result(None)
            log.warning("bus permission refused", name=self._name, action=match[1], subject=match[2])
        elif isinstance(error, nats.errors.SlowConsumerError):
            self._say("slow", "bus messages dropped: handler too slow", subject=error.subject)
        elif not self._closing:
            self._say(type(error).__name__, "bus connection error", error=str(error) or type(error).__name__)

    def _say(self, kind: str, text: str, **details: object) -> None:
        """Log, but each kind at most every ten seconds: a lost broker is reported by every attempt."""
        now = time.monotonic()
        if now >= self._quiet_until.get(kind, 0.0):
            self._quiet_until[kind] = now + 10.0
            log.warning(text, name=self._name, **details)

    @contextmanager
    def refusal(self, action: str, subject: str) -> Iterator[asyncio.Future[None]]:
        """A future that is done when the broker refuses ``action`` (publish, subscription) on ``subject``, and that
        fails with BusUnavailable when the connection is lost."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = (action, subject.lower())  # the library reports errors in lower case
        try:
            yield waiter
        finally:
            del self._waiters[waiter]
            if not waiter.cancel() and not waiter.cancelled():
                waiter.exception()  # seen, whether or not anybody asked

    async def subscribe(self, subject: str, handler: RawHandler, *, queue: str = "") -> LastingSubscription:
        """Subscribe and wait until the broker knows of it. Raises AccessRefused, BusUnavailable."""
        subscription = LastingSubscription(self, subject, queue, handler)
        client = self.client
        with self.refusal("subscription", subject) as refused, translated(subject):
            current = subscription.current = await self._subscribe(client, subscription)
            try:
                await self.flush()
                if refused.done():
                    refused.result()
                    raise AccessRefused(f"may not subscribe to {subject}")
            except BaseException:  # the client would keep it, and hand its messages to a handler that nobody waits for
                with suppress(nats.errors.Error):
                    await current.unsubscribe()
                raise
        self._subscriptions.append(subscription)
        return subscription

    async def flush(self) -> None:
        """Wait until the broker has seen what was sent so far. Raises BusUnavailable, RequestTimeout."""
        client = self.client
        with translated("flush"), _cancellation_kept():
            # Twice: the library's ping overtakes what waits in its buffer, but then lets it go out.
            await client.flush(FLUSH_S)
            await client.flush(FLUSH_S)

    async def _subscribe(self, client: Client, subscription: LastingSubscription) -> NatsSubscription:
        return await client.subscribe(
            subscription.subject,
            queue=subscription.queue,
            cb=subscription.handler,
            pending_msgs_limit=PENDING_MESSAGES,
            pending_bytes_limit=PENDING_BYTES,
        )

    async def unsubscribe(self, subscription: LastingSubscription) -> None:
        if subscription not in self._subscriptions:
            return
        self._subscriptions.remove(subscription)
        if subscription.current is not None:
            try:
                await subscription.current.unsubscribe()
            except nats.errors.Error as error:
                log.debug("unsubscribe without a connection", subject=subscription.subject, error=str(error))

    async def publish(
        self, subject: str, data: bytes, headers: Mapping[str, str] | None = None, *, reply: str = ""
    ) -> None:
        client = self.client
        check_size(client, subject, data, headers)
        with translated(subject), _cancellation_kept():
            await client.publish(subject, data, reply=reply, headers=dict(headers) if headers else None)

    async def request(self, subject: str, data: bytes, headers: Mapping[str, str] | None, timeout_s: float) -> Msg:
        """One request. Raises what Bus.request does, but for RemoteError."""
        client = self.client
        check_size(client, subject, data, headers)
        with self.refusal("publish", subject) as refused, translated(subject):
            asking = asyncio.create_task(
                client.request(subject, data, timeout=timeout_s, headers=dict(headers) if headers else None)
            )
            reply: Msg = await self.first(asking, refused, f"may not publish to {subject}")
            return reply

    async def first(self, doing: asyncio.Future[Any], refused: asyncio.Future[None], otherwise: str) -> Any:
        """What ``doing`` brings, or AccessRefused with the text ``otherwise`` as soon as the broker refuses it."""
        try:
            await asyncio.wait({doing, refused}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
            refused.result()
            raise AccessRefused(otherwise)
        finally:
            await _stop(doing)

    async def close(self, finishing: Collection[asyncio.Future[Any]] = ()) -> None:
        """Let the handlers and what they started (``finishing``, read late) come to an end, then disconnect."""
        if self._closing:
            return
        self._closing = True
        for task in list(self._tasks):
            await _stop(task)
        client = self._client
        if client is None:
            return
        if client.is_connected:
            await _settle([_drain(s.current) for s in self._subscriptions if s.current is not None])
            await _settle(list(finishing))
        self._subscriptions.clear()
        await client.close()
        self._client = None

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _next_server(pool: list[Server], _info: dict[str, Any]) -> tuple[Server | None, float]:
    """Each server in turn, with a growing and jittered wait."""
    server = min(pool, key=lambda each: each.reconnects)
    wait_s = min(MAX_RECONNECT_WAIT_S, 0.1 * 2.0 ** min(server.reconnects, 16))
    return server, wait_s * random.uniform(0.5, 1.0)


async def _logged(callback: Callback) -> None:
    try:
        await callback()
    except Exception:
        log.exception("a reconnect callback failed")


async def _drain(subscription: NatsSubscription) -> None:
    await subscription.drain()  # type: ignore[no-untyped-call]


async def _settle(work: Sequence[Awaitable[Any]]) -> None:
    """Wait for all of it, but not for ever."""
    if work:
        _, late = await asyncio.wait([asyncio.ensure_future(each) for each in work], timeout=DRAIN_S)
        for each in late:
            await _stop(each)


@contextmanager
def _cancellation_kept() -> Iterator[None]:
    """Raises CancelledError if the task was cancelled meanwhile: the library swallows a cancellation that meets it
    while flushing, and a loop that published would go on for ever."""
    task = asyncio.current_task()
    assert task is not None, "only a task can be cancelled"
    before = task.cancelling()
    try:
        yield
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError


async def _stop(task: asyncio.Future[Any]) -> None:
    """Cancel until it has ended: the library swallows a cancellation that meets it while flushing."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.5)
    if not task.cancelled():
        task.exception()
