"""One lasting connection to NATS: waits for the broker, comes back after any loss, keeps its subscriptions.

The client library reconnects by itself after a broken connection, but closes for good on most errors that a server
reports (connection limits, an expired account, a protocol error). It then starts a fresh client and
subscribes everything again. It also turns the library's asynchronous permission errors into an answer for the
operation that caused them.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

import nats.errors
import structlog
from nats.aio.client import Client, RawCredentials
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from ces_common import subjects
from ces_common.bus.nats_client import MAX_RECONNECT_WAIT_S, TolerantClient, next_server
from ces_common.bus.nats_errors import check_size, translated
from ces_common.bus.nats_refusals import Refusals, is_no_entry
from ces_common.bus.nats_subscription import LastingSubscription, RawHandler
from ces_common.bus.nats_tasks import cancellation_kept, drain, logged, settle, stop
from ces_common.bus.port import AccessRefused, BusError, BusUnavailable, Callback
from ces_common.natsauth.credentials import Credentials, credentials_file

log = structlog.get_logger(__name__)

PING_EVERY_S: Final = 5  # with two unanswered pings a silent loss is noticed within 15 s
CONNECT_S: Final = 5  # of one try; over a slow link the beginning of TLS takes a while
FLUSH_S: Final = 10
PENDING_MESSAGES: Final = 16384
PENDING_BYTES: Final = 64 * 1024 * 1024


class NatsConnection:
    def __init__(
        self,
        servers: Sequence[str],
        *,
        name: str,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._servers = list(servers)
        self._tls = tls
        self._name = name
        self._credentials = credentials
        self._inbox_prefix = subjects.inbox_prefix(name)
        self._client: Client | None = None
        self._subscriptions: list[LastingSubscription] = []
        self._callbacks: list[Callback] = []
        self._when_refused: list[Callback] = []
        self._asking: dict[asyncio.Task[Msg], Client] = {}
        self._refusals = Refusals(name)
        self._tasks: set[asyncio.Task[None]] = set()
        self._up = asyncio.Event()
        self._closing, self._why = False, ""
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

    @property
    def server(self) -> str:
        """The id of the server at the other end. Raises BusUnavailable."""
        return str(self.client._server_info["server_id"])  # the library tells it nowhere else

    async def wait_connected(self) -> None:
        while not self.connected:
            self._up.clear()
            await self._up.wait()

    def on_reconnect(self, callback: Callback) -> None:
        self._callbacks.append(callback)

    def on_refused(self, callback: Callback) -> None:
        self._when_refused.append(callback)

    async def connect(self, deadline_s: float | None) -> None:
        try:
            async with asyncio.timeout(deadline_s):
                client = await self._first_connection(stop_when_refused=True)
        except TimeoutError as error:
            where = ", ".join(self._servers)
            raise BusUnavailable(f"no message broker at {where} within {deadline_s} s{self._why}") from error
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
                    self._tell(self._when_refused)
                    raise
                self._refused(error)
            except BusUnavailable as error:
                self._why = f"; the last try: {error}"
                self._say("unreachable", "waiting for the message broker", servers=self._servers, error=str(error))
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))
            wait_s = min(MAX_RECONNECT_WAIT_S, wait_s * 2)

    async def _attempt(self) -> Client:
        """One try of each server. The library itself would go on for ever, also with refused credentials."""
        client = TolerantClient(self._tls)
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
            if client is not self._client:  # its place was taken
                return
            log.info("bus reconnected", name=self._name)
            self._came_back()

        async def on_disconnected() -> None:
            if client is not self._client:
                return
            if not self._closing:
                log.warning("bus disconnected", name=self._name)
            self._refusals.lost()

        async def on_closed() -> None:
            if not self._closing and client is self._client:
                self._spawn(self._revive())

        options: dict[str, Any] = {}
        if self._credentials is not None:
            options["user_credentials"] = RawCredentials(
                credentials_file(self._credentials.jwt, self._credentials.seed)
            )
        if self._tls is not None:
            options["tls_handshake_first"] = True  # else the library begins TLS again when the server offers it
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
                reconnect_to_server_handler=next_server,
                ping_interval=PING_EVERY_S,
                connect_timeout=CONNECT_S,
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
                await stop(connecting)
                await client.close()
        reason = errors[-1] if errors else ConnectionResetError("the broker closed the connection at once")
        if is_no_entry(reason):
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

    async def use(self, credentials: Credentials) -> None:
        """Go on with other credentials of the same identity, over a connection of their own. It is made, and everything
        subscribed there, before the one that takes its place ends: nothing is lost, and for a moment a message may come
        twice. Where there is no connection now, the next one is made with them. Raises AccessRefused, BusUnavailable;
        then all stays as it was."""
        before, former = self._client, self._credentials
        self._credentials = credentials
        if before is None:
            return
        if not before.is_connected:  # the library would try the former ones for ever
            await before.close()
            return
        try:
            client, fresh = await self._second_connection()
        except BaseException:
            self._credentials = former
            raise
        if self._client is not before:  # lost meanwhile, and made again with these very credentials
            await client.close()
            return
        self._adopt(client)
        retired = [each.current for each in fresh]
        for subscription, current in fresh.items():
            subscription.current = current
            if subscription not in self._subscriptions:  # closed meanwhile
                await current.unsubscribe()
        self._spawn(self._retire(before, [each for each in retired if each is not None]))

    async def _second_connection(self) -> tuple[Client, dict[LastingSubscription, NatsSubscription]]:
        client = await self._attempt()
        try:
            fresh: dict[LastingSubscription, NatsSubscription] = {}
            with translated("subscriptions"):
                # Others may subscribe meanwhile, on the connection that ends. After the last look nobody can.
                while missing := [each for each in self._subscriptions if each not in fresh]:
                    fresh |= {each: await self._subscribe(client, each) for each in missing}
                    await client.flush(FLUSH_S)
            return client, fresh
        except BaseException:
            await client.close()
            raise

    async def _retire(self, client: Client, subscriptions: Sequence[NatsSubscription]) -> None:
        """Let what was asked and heard over it come to an end, then close it."""
        try:
            await settle([drain(each) for each in subscriptions])
            asked = [task for task, by in self._asking.items() if by is client]
            if asked:
                await asyncio.wait(asked)
        finally:
            await client.close()

    def _came_back(self) -> None:
        self._up.set()
        self._tell(self._callbacks)

    def _refused(self, error: Exception) -> None:
        self._say("refused", "the message broker refuses this identity", error=str(error))
        self._tell(self._when_refused)

    def _tell(self, callbacks: Sequence[Callback]) -> None:
        for callback in callbacks:
            self._spawn(logged(callback))

    def _on_error(self, error: Exception) -> None:
        if self._refusals.told(error):
            return
        if isinstance(error, nats.errors.SlowConsumerError):
            self._say("slow", "bus messages dropped: handler too slow", subject=error.subject)
        elif self._closing:
            return
        elif is_no_entry(error):
            self._refused(error)
        else:
            self._say(type(error).__name__, "bus connection error", error=str(error) or type(error).__name__)

    def _say(self, kind: str, text: str, **details: object) -> None:
        """Log, but each kind at most every ten seconds: a lost broker is reported by every attempt."""
        now = time.monotonic()
        if now >= self._quiet_until.get(kind, 0.0):
            self._quiet_until[kind] = now + 10.0
            log.warning(text, name=self._name, **details)

    def refusal(self, action: str, subject: str) -> AbstractContextManager[asyncio.Future[None]]:
        """A future that is done when the broker refuses ``action`` (publish, subscription) on ``subject``, and that
        fails with BusUnavailable when the connection is lost."""
        return self._refusals.of(action, subject)

    async def subscribe(self, subject: str, handler: RawHandler, *, queue: str = "") -> LastingSubscription:
        """Subscribe and wait until the broker knows of it. Raises AccessRefused, BusUnavailable."""
        subscription = LastingSubscription(subject, queue, handler, self.unsubscribe)
        client = self.client
        with self.refusal("subscription", subject) as refused, translated(subject):
            current = subscription.current = await self._subscribe(client, subscription)
            try:
                await self.flush()
                if refused.done():
                    refused.result()
                    raise AccessRefused(f"may not subscribe to {subject}")
                if client is not self._client:
                    raise BusUnavailable("the connection was replaced while subscribing")
            except BaseException:  # the client would keep it, and hand its messages to a handler that nobody waits for
                with suppress(nats.errors.Error):
                    await current.unsubscribe()
                raise
        self._subscriptions.append(subscription)
        return subscription

    async def flush(self) -> None:
        """Wait until the broker has seen what was sent so far. Raises BusUnavailable, RequestTimeout."""
        client = self.client
        with translated("flush"), cancellation_kept():
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
        with translated(subject), cancellation_kept():
            await client.publish(subject, data, reply=reply, headers=dict(headers) if headers else None)

    async def request(self, subject: str, data: bytes, headers: Mapping[str, str] | None, timeout_s: float) -> Msg:
        """One request. Raises what Bus.request does, but for RemoteError."""
        client = self.client
        check_size(client, subject, data, headers)
        with self.refusal("publish", subject) as refused, translated(subject):
            asking = asyncio.create_task(
                client.request(subject, data, timeout=timeout_s, headers=dict(headers) if headers else None)
            )
            self._asking[asking] = client
            asking.add_done_callback(self._asking.pop)
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
            await stop(doing)

    async def close(self, finishing: Collection[asyncio.Future[Any]] = ()) -> None:
        """Let the handlers and what they started (``finishing``, read late) come to an end, then disconnect."""
        if self._closing:
            return
        self._closing = True
        for task in list(self._tasks):
            await stop(task)
        client = self._client
        if client is None:
            return
        if client.is_connected:
            await settle([drain(s.current) for s in self._subscriptions if s.current is not None])
            await settle(list(finishing))
        self._subscriptions.clear()
        await client.close()
        self._client = None

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
