"""A reader of the manager's state: events hint when to look, the snapshot says what is.

Events are heard as plain messages, by every reader, and not read from the stream: two schedulers at work each hear all
of them, also the answer to a proposal, whoever made it. One that is lost need not come again. After a lost connection
everything is read again, and where the bus drops messages because too many wait, each of those that wait is a hint that
comes later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog
from prometheus_client import Gauge

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, Message, RequestTimeout, Subscription
from ces_common.messages.records import JobRecord, Snapshot
from ces_common.service import Hint
from ces_common.state_view import StateView
from ces_common.tracing import TRACEPARENT, stored_context

log = structlog.get_logger()
ANSWER_S = 3.0  # a manager that was asked and then died leaves the question unanswered
LONGEST_ANSWER_S = 30.0  # with ten thousand jobs in the queue all of it takes seconds to tell
SETTLE_S = 0.01
READ = Gauge("ces_state_read_timestamp_seconds", "When the manager's state was last read, as Unix time")
VERSION = Gauge("ces_state_version", "The version of the manager's state that was read last")
MOST_HOPS = 4096
LARGE = 64 * 1024  # bytes; more than that is parsed in a thread, since all of thousands of jobs takes a second


class StateReader:
    """Keeps a view up to date. ``hint`` is set by every event, and by a reconnect."""

    def __init__(self, bus: Bus) -> None:
        self.view = StateView()
        self.hint = Hint()
        self.fresh = False  # whether the last attempt to read succeeded
        self._bus = bus
        self._patience = 1.0
        self._asking = asyncio.Lock()
        self._subscriptions: list[Subscription] = []
        self._on_event: Callable[[Message], None] | None = None
        self._hops: dict[str, str] = {}  # the context of an event -> that of its way here, the last ones heard

    async def start(self, event_subjects: list[str], on_event: Callable[[Message], None] | None = None) -> None:
        """Listen for hints, passing each to ``on_event``; the first refresh is due at once."""
        self._on_event = on_event
        self._bus.on_reconnect(self._reconnected)
        for subject in event_subjects:
            self._subscriptions.append(await self._bus.subscribe(subject, self._event))
        self.hint.set()

    async def wait(self, timeout_s: float) -> None:
        """Until the next hint, and a little longer: hints come in flocks, and one look serves them all."""
        if await self.hint.wait(timeout_s):
            await asyncio.sleep(SETTLE_S)

    async def close(self) -> None:
        for subscription in self._subscriptions:
            await subscription.close()

    async def refresh(self, timeout_s: float = ANSWER_S) -> bool:
        """Ask the manager for what changed; returns whether it answered. After a timeout the next answer is waited for
        twice as long, since it may be a long one."""
        async with self._asking:  # of two answers the older must not be merged last
            return await self._refresh(timeout_s)

    async def _refresh(self, timeout_s: float) -> bool:
        try:
            raw = await self._bus.request(
                subjects.rpc("manager", "snapshot"),
                self.view.query().encode(),
                timeout_s=min(timeout_s * self._patience, LONGEST_ANSWER_S),
            )
            self.view.merge(await _parsed(raw))
        except (BusError, ValueError) as error:
            self._patience = min(2 * self._patience, LONGEST_ANSWER_S) if isinstance(error, RequestTimeout) else 1.0
            if self.fresh:
                log.warning("the manager's snapshot cannot be read", error=str(error))
            self.fresh = False
            return False
        self._patience = 1.0
        READ.set_to_current_time()
        VERSION.set(self.view.version)
        if not self.fresh:
            log.info("following the manager's state", version=self.view.version)
        self.fresh = True
        return True

    def context_of(self, job: JobRecord) -> str | None:
        """What a traced job's last step has come by: its event, where that was heard. None where it is not traced."""
        return None if job.traceparent is None else self._hops.get(job.traceparent, job.traceparent)

    def _note_hop(self, message: Message) -> None:
        stored = stored_context(message.data.decode(errors="replace"))
        if stored is not None:
            self._hops[stored] = message.headers[TRACEPARENT]
            if len(self._hops) > MOST_HOPS:
                del self._hops[next(iter(self._hops))]

    async def _event(self, message: Message) -> None:
        self.hint.set()
        if TRACEPARENT in message.headers:
            self._note_hop(message)
        if self._on_event is not None:
            self._on_event(message)

    async def _reconnected(self) -> None:
        self.hint.set()


async def _parsed(raw: bytes) -> Snapshot:
    """Raises ValueError."""
    if len(raw) <= LARGE:
        return Snapshot.model_validate_json(raw)
    return await asyncio.to_thread(Snapshot.model_validate_json, raw)
