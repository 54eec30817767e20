"""The outbox relay: publishes committed events in order, and marks them once the broker has stored them.

A crash between the two publishes an event again; its message id lets the stream drop it. Several are on their way at a
time, so after a failure an event may be stored behind one that came after it: to readers events are hints. Of several
managers one relays; should two do so for a moment, the stream drops what the second one publishes as well.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import structlog
from prometheus_client import Counter, Gauge

from ces_common.bus.port import Bus, BusError, PayloadTooLarge
from ces_common.db import UNAVAILABLE, UnitOfWork, cause_of
from ces_common.db.outbox import StoredEvent, mark_published, unpublished_events
from ces_common.fault_points import fault_point
from ces_common.messages.events import event_type
from ces_common.service import Hint
from ces_common.tracing import OpenSpan, headers, span, stored_context

log = structlog.get_logger()
PUBLISHED = Counter("ces_events_published_total", "Events that the broker stored")
TOO_LARGE = Counter("ces_events_too_large_total", "Events that the broker takes no message of the size of")
BEHIND = Gauge("ces_outbox_unpublished_events", "Events that the last round found to publish")
# Events of a traced attempt that somebody acts on. The others tell the context in which they came about, and no more.
LEADING = frozenset(
    event_type(aggregate, kind) for aggregate, kind in (("job", "queued"), ("job", "starting"), ("plan", "committed"))
)
BATCH = 256
IN_FLIGHT = 32
LOOK_S = 1.0
RETRY_S = 0.5


class Relay:
    """``hint`` it after each commit, and when its turn has come. ``holds``: whether it is this manager's turn."""

    def __init__(self, uow: UnitOfWork, bus: Bus, holds: Callable[[], bool] = lambda: True) -> None:
        self._uow, self._bus, self._holds = uow, bus, holds
        self.hint = Hint()

    async def run(self) -> None:
        while True:
            if not self._holds():
                await self.hint.wait(LOOK_S)
                continue
            try:
                full = await self.step()
            except (BusError, *UNAVAILABLE) as error:
                log.warning("events wait for the broker or the database", error=cause_of(error))
                await asyncio.sleep(RETRY_S)
                continue
            if not full:
                await self.hint.wait(LOOK_S)

    async def step(self) -> bool:
        """Publish one batch; True when there may be more."""
        events = await asyncio.to_thread(self._unpublished)
        BEHIND.set(len(events))
        if not events:
            return False
        fault_point("commit-relay")
        for start in range(0, len(events), IN_FLIGHT):
            await self._publish(events[start : start + IN_FLIGHT])
        fault_point("relay-ack")
        await asyncio.to_thread(self._mark, [event.sequence for event in events])
        return len(events) == BATCH

    async def _publish(self, events: list[StoredEvent]) -> None:
        """Raises BusError once all have been tried, if the broker has not stored one of them."""
        spans = [_span_of(event) for event in events]
        sending = (
            self._bus.publish_fact(
                event.bus_subject,
                event.body.encode(),
                message_id=event.id,
                headers=None if under_way is None else headers(under_way.traceparent),
            )
            for event, under_way in zip(events, spans, strict=True)
        )
        outcomes = await asyncio.gather(*sending, return_exceptions=True)
        for under_way, outcome in zip(spans, outcomes, strict=True):
            if under_way is not None and outcome is True:  # else it was published before, or will be once more
                under_way.end()
        for event, outcome in zip(events, outcomes, strict=True):
            if isinstance(outcome, PayloadTooLarge):  # no retry will help, and those behind it must go on
                log.error("event too large to be published", id=event.id, type=event.type, error=str(outcome))
                TOO_LARGE.inc()
            elif isinstance(outcome, BaseException):
                raise outcome
            elif outcome:  # else the stream had it already
                PUBLISHED.inc()

    def _unpublished(self) -> list[StoredEvent]:
        with self._uow.read() as tx:
            return unpublished_events(tx, BATCH)

    def _mark(self, sequences: list[int]) -> None:
        with self._uow.bare_write() as session:
            mark_published(session, sequences)


def _span_of(event: StoredEvent) -> OpenSpan | None:
    """Of the way of an event that a traced attempt goes on with."""
    if event.type not in LEADING or event.job is None:
        return None
    stored = stored_context(event.body)
    if stored is None:
        return None
    name = f"publish {event.type.removeprefix('ces.v1.')}"
    attempt = int(json.loads(event.body)["data"]["attempt"])
    return span(name, stored, job=event.job, attempt=attempt, kind="producer")
