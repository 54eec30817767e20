"""What every service asks of the bus, and what NATS and the bus that tests have in memory both promise.

Payloads are bytes; what they mean is the caller's business. Facts are delivered at least once and may repeat;
everything else may vanish. All times are seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

DEFAULT_TIMEOUT_S: Final = 5.0
DEFAULT_MAX_DELIVER: Final = 10
DEFAULT_ACK_WAIT_S: Final = 10.0
HANDLED: Final = 3  # times ``ack_wait`` that a handler may take
DEFAULT_BATCH: Final = 16
LARGEST_REQUEST: Final = 8 * 1024 * 1024  # bytes once expanded, of a request and of an answer that is not trusted
LARGEST_ANSWER: Final = 128 * 1024 * 1024  # of one that is: all that the manager knows
MAX_BACKOFF_S: Final = 60.0

# Headers of a dead letter, in addition to the message's own.
DEAD_REASON: Final = "Ces-Dead-Reason"
DEAD_SUBJECT: Final = "Ces-Dead-Subject"
DEAD_DURABLE: Final = "Ces-Dead-Durable"
DEAD_DELIVERIES: Final = "Ces-Dead-Deliveries"


class BusError(Exception):
    """Anything that went wrong on the bus."""


class BusUnavailable(BusError):
    """No connection to the broker, or it does not store what it should; worth trying again later."""


class AccessRefused(BusError):
    """The broker does not let this identity do that, or does not know it."""


class NoResponder(BusError):
    """Nobody serves the subject."""


class RequestTimeout(BusError):
    """The responder did not answer in time; it may still have acted."""


class Superseded(BusError):
    """A key holds something else than what its writer has seen there."""


class PayloadTooLarge(BusError):
    """A message is larger than the broker takes, also when compressed."""

    def __init__(self, subject: str, size: int, limit: int) -> None:
        super().__init__(f"message for {subject} has {size} bytes, the broker takes {limit}")
        self.size = size
        self.limit = limit


class RemoteError(BusError):
    """The responder refused or failed. A handler may raise it to answer with a code of its own.

    ``code`` is one word for programs (``internal`` when the handler failed unexpectedly), the text is for people.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class Retry(Exception):
    """Raised by a handler of facts that cannot work now, whatever the message: it is called again with the same message
    after ``delay_s``, as often as it takes. Uses up no delivery; what comes after the message waits."""

    def __init__(self, delay_s: float, reason: str = "") -> None:
        super().__init__(reason or f"again in {delay_s:g} s")
        self.delay_s = delay_s


class Reject(Exception):
    """Raised by a handler of facts: no delivery will ever succeed (malformed); a dead letter at once."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that is not stored: a heartbeat, a report, a request."""

    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of a stored fact; ``deliveries`` counts from 1."""

    subject: str
    data: bytes
    headers: Mapping[str, str]
    message_id: str
    deliveries: int


FactHandler = Callable[[Delivery], Awaitable[None]]
MessageHandler = Callable[[Message], Awaitable[None]]
RequestHandler = Callable[[Message], Awaitable[bytes]]
BatchHandler = Callable[[list[Message]], Awaitable[list[bytes | RemoteError]]]
KeyHandler = Callable[[str, bytes | None], Awaitable[None]]
Callback = Callable[[], Awaitable[None]]


class Subscription(Protocol):
    """Something that runs until it is closed."""

    async def close(self) -> None:
        """Stop; a handler that is running is cancelled."""


@dataclass(frozen=True, slots=True)
class Entry:
    """``value``: None where it was deleted, or never stored. ``revision``: grows with each change of the bucket; 0
    where nothing was ever stored."""

    value: bytes | None
    revision: int


class Bus(Protocol):
    """One client of the broker."""

    @property
    def connected(self) -> bool: ...

    async def connect(self, *, deadline_s: float | None = None) -> None:
        """Connect, waiting for the broker with a growing delay; for ever without a deadline.

        Raises BusUnavailable at the deadline, AccessRefused when the broker refuses the credentials, BusError when the
        address is malformed.
        """

    async def close(self) -> None:
        """Stop consuming, let running handlers of requests and messages finish, and disconnect."""

    def on_reconnect(self, callback: Callback) -> None:
        """Call back after each connection that follows a lost one. Errors are logged."""

    async def provision(self) -> None:
        """Make sure that the streams and the bucket exist as they should. For the manager only. Raises BusUnavailable,
        AccessRefused, RequestTimeout, and BusError where the broker cannot keep them so."""

    async def publish_fact(
        self, subject: str, data: bytes, *, message_id: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        """Store a fact and wait until it is stored. False if ``message_id`` was stored before. Plain subscribers to its
        subject hear it at once, and again each time that it is published.

        Raises BusUnavailable, AccessRefused, PayloadTooLarge, and RequestTimeout when it is not known whether it was
        stored; repeating it with the same id is always safe.
        """

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
        """Handle the stored facts on ``subjects`` in order, except for redeliveries. The broker remembers under the
        name ``durable`` how far the handling has come; clients with the same name share the work. Goes on by itself
        after the broker or its store was lost, and waits for a stream that does not exist yet. Raises AccessRefused.

        A message is handled once the handler returns. If it raises Retry, it is called again. After any other
        exception the message is delivered again after a growing delay, at most ``max_deliver`` times. After that, and
        at once after Reject, it becomes a dead letter on ``ces.v1.dead.<durable>``. A message comes again ``ack_wait``
        seconds after its process has died, or where its handler takes longer than ``HANDLED`` times that.
        """

    async def publish(self, subject: str, data: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        """Send to whoever listens now. Raises BusUnavailable, PayloadTooLarge."""

    async def subscribe(self, subject: str, handler: MessageHandler, *, queue: str | None = None) -> Subscription:
        """Handle messages one after the other; with ``queue`` each goes to one member. Errors are logged."""

    async def request(
        self, subject: str, data: bytes = b"", *, timeout_s: float = DEFAULT_TIMEOUT_S, largest: int = LARGEST_ANSWER
    ) -> bytes:
        """Ask and wait. ``largest``: bytes that the answer may have, expanded. Raises NoResponder at once,
        RequestTimeout, RemoteError, BusUnavailable, AccessRefused, PayloadTooLarge, and BusError for an answer that
        is damaged or too large."""

    async def serve(
        self, subject: str, handler: RequestHandler, *, largest: int = LARGEST_REQUEST, queue: str | None = None
    ) -> Subscription:
        """Answer requests, several at a time. What the handler raises reaches the requester as RemoteError. One of more
        than ``largest`` bytes, expanded, is refused. A request is ignored where its reply subject is no inbox, or
        another's where nodes ask (``subjects.answered_to``)."""

    async def serve_latest(
        self, subject: str, handler: BatchHandler, *, largest: int, queue: str | None = None
    ) -> Subscription:
        """Answer requests in batches of all that wait, one batch after the other. For senders that repeat themselves,
        each on a subject of its own: a newer request takes the place of the one that waits there. That one stays
        unanswered, and so does one whose sender has given up. One of more than ``largest`` bytes, expanded, is
        refused. The handler returns the answers in order; what it raises reaches all of the batch."""

    async def kv_put(self, key: str, data: bytes, *, after: int | None = None) -> int:
        """Store a desired state; returns its revision. ``after``: only if the key is still at that revision, else
        Superseded. Raises BusUnavailable, AccessRefused, PayloadTooLarge."""

    async def kv_entry(self, key: str) -> Entry:
        """What was last stored under ``key``. Raises what ``kv_get`` does."""

    async def kv_get(self, key: str) -> bytes | None:
        """The desired state under ``key``, as last stored. For central services only: a node asks the manager
        (``subjects.fetch``). Raises BusUnavailable, AccessRefused, RequestTimeout."""

    async def kv_delete(self, key: str) -> None: ...

    async def kv_keys(self, kind: str) -> list[str]:
        """All keys of one kind (``compute``, ``network``) with a value, sorted. Raises what ``kv_get`` does."""

    async def kv_subscribe(self, node: str, handler: KeyHandler) -> Subscription:
        """Hear each change of a node's keys from now on; a deleted key comes as None. Changes made while
        disconnected are missed: ask for the keys on reconnect and now and then."""


def backoff_s(deliveries: int) -> float:
    """How long to wait before the next delivery after ``deliveries`` failed ones: 0.5 s, doubling to 60 s."""
    return float(min(MAX_BACKOFF_S, 0.5 * 2.0 ** min(deliveries - 1, 16)))
