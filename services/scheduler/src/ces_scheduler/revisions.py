"""When to revise what runs: at once where a flow's path is broken or too full; where room appeared, not too often."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter, Histogram
from ulid import ULID

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, PayloadTooLarge
from ces_common.messages.events import (
    PlanRevised,
    RevisionCause,
    RevisionProposed,
    RevisionRejected,
    new_event,
)
from ces_common.view import StateView
from ces_core.resettle import mend, refill
from ces_core.topology import Topology
from ces_scheduler.backoff import backoff_s
from ces_scheduler.revising import Settle, Site, revise, site_of
from ces_scheduler.translate import Offer

log = structlog.get_logger()
ANSWERS = [subjects.events("plan", "revised"), subjects.events("revision", "rejected")]
ANSWER_S = 5.0  # after this long without an answer a revision counts as lost
REVISION = Histogram("ces_revision_seconds", "Time to work out one revision of running jobs", ["cause"])
PROPOSED = Counter("ces_revisions_proposed_total", "Revisions of running jobs proposed", ["cause"])
Clock = Callable[[], float]  # seconds, steady


@dataclass(frozen=True)
class _Seen:
    """What a re-fill goes by. Neither rates nor paths are part of it: no revision causes another."""

    holding: frozenset[str]  # attempts that hold bandwidth
    topology: Topology | None  # of the nodes within reach, so it is another one too when a node comes back


@dataclass(frozen=True)
class _Awaited:
    """A revision that was proposed and not answered yet."""

    revision: str
    cause: RevisionCause
    until: float


@dataclass(frozen=True)
class _Rejected:
    """Revisions that do not fit, though they do as far as can be seen from here."""

    count: int = 0  # in a row
    until: float = -math.inf  # nothing is proposed before


class Revisions:
    """Proposes one revision at a time. ``refill_s``: rates are filled again at most once in so many seconds."""

    def __init__(self, bus: Bus, source: str, clock: Clock, refill_s: float) -> None:
        self._bus, self._source, self._clock, self._refill_s = bus, source, clock, refill_s
        self._awaited: _Awaited | None = None
        self._rejected: dict[RevisionCause, _Rejected] = {}  # by what they were for: a re-fill must not delay mending
        self._seen = _Seen(frozenset(), None)
        self._room = True  # whether room may have appeared since the last re-fill; at the start nobody knows
        self._filled_at = -math.inf

    async def mend(self, view: StateView, offer: Offer) -> float:
        """Propose what flows need whose path is broken or too full; returns after how many seconds to look again
        unasked. Raises BusError."""
        now = self._clock()
        self._note(view, offer)
        if self._awaited is not None and now >= self._awaited.until:
            self.forget()
        if self._awaited is not None:
            return self._awaited.until - now
        site = site_of(view, offer)
        if not (site.broken or site.crowded):
            return math.inf
        wait_s = self._rejected.get("link", _Rejected()).until - now
        if wait_s > 0:
            return wait_s
        await self._propose("link", view.version, site, mend)
        return math.inf if self._awaited is None else ANSWER_S

    async def refill(self, view: StateView, offer: Offer) -> float:
        """Propose better rates where room may have appeared; to be asked after ``mend``, and only while no job waits
        for the answer to its plan, as it needs that room more. Returns and raises as ``mend`` does."""
        now = self._clock()
        if self._awaited is not None or not self._room:
            return math.inf
        rejected = (entry.until for entry in self._rejected.values())  # what waits to be mended goes first
        wait_s = max([self._filled_at + self._refill_s, *rejected]) - now
        if wait_s > 0:
            return wait_s
        site = site_of(view, offer)
        if not site.flows:
            return math.inf
        self._room, self._filled_at = False, now
        await self._propose("room", view.version, site, refill)
        return math.inf if self._awaited is None else ANSWER_S

    def answered(self, answer: PlanRevised | RevisionRejected) -> None:
        if self._awaited is None or answer.revision != self._awaited.revision:
            return
        cause = self._awaited.cause
        if isinstance(answer, PlanRevised):
            self._awaited = None
            self._rejected.pop(cause, None)
            return
        log.info("a revision was rejected", revision=answer.revision, reason=answer.reason)
        self.forget()
        if not answer.stale:
            count = self._rejected.get(cause, _Rejected()).count + 1
            self._rejected[cause] = _Rejected(count, self._clock() + backoff_s(count))

    def forget(self) -> None:
        """What was proposed comes to nothing, or the broker may have lost it: it is worked out anew."""
        if self._awaited is not None and self._awaited.cause == "room":
            self._room = True
        self._awaited = None

    def _note(self, view: StateView, offer: Offer) -> None:
        holding = frozenset(job.key for job in view.jobs.values() if job.allocations and not job.released)
        topology = offer.cluster.topology
        if self._seen.topology is not topology:
            self._room = True
            self._rejected.clear()
        elif self._seen.holding - holding:
            self._room = True
        self._seen = _Seen(holding, topology)

    async def _propose(self, cause: RevisionCause, version: int, site: Site, settle: Settle) -> None:
        started = time.perf_counter()
        jobs = await asyncio.to_thread(revise, site, settle)
        seconds = time.perf_counter() - started
        REVISION.labels(cause).observe(seconds)
        if not jobs:
            return
        revision = RevisionProposed(revision=str(ULID()), version=version, cause=cause, jobs=jobs)
        event = new_event(
            self._source,
            "revision",
            "proposed",
            revision.revision,
            revision,
            datetime.now(UTC),
            event_id=revision.revision,
        )
        self._awaited = _Awaited(revision.revision, cause, self._clock() + ANSWER_S)
        try:
            await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
        except PayloadTooLarge as error:
            log.error("a revision is too large to be proposed", jobs=len(jobs), error=str(error))
            self._awaited = None  # it would be no smaller the next time
            return
        except BusError:
            self.forget()
            raise
        PROPOSED.labels(cause).inc()
        log.info(
            "revision proposed",
            revision=revision.revision,
            cause=cause,
            version=version,
            jobs=len(jobs),
            ms=round(seconds * 1000, 2),
        )
