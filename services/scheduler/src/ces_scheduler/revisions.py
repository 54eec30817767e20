"""Revisions of running flows: at once where a path is broken or overfull, now and then where capacity was freed."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter, Histogram
from ulid import ULID

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, PayloadTooLarge
from ces_common.messages.events import new_event
from ces_common.messages.plans import PlanRevised, RevisionCause, RevisionProposed, RevisionRejected
from ces_common.metrics import SHORT
from ces_common.state_view import StateView
from ces_core.bandwidth.reroute import reoptimise, reroute
from ces_core.model.topology import Topology
from ces_scheduler.holders import Holders
from ces_scheduler.offer import Offer
from ces_scheduler.proposals import Clock, Rejections, backoff_s
from ces_scheduler.revisable_flows import RevisableFlows, Settle, Soundness, revisable_flows, revise

log = structlog.get_logger()
ANSWERS = [subjects.events("plan", "revised"), subjects.events("revision", "rejected")]
ANSWER_S = 5.0  # after this long without an answer a revision counts as lost
REVISION = Histogram("ces_revision_seconds", "Time to work out one revision of running jobs", ["cause"], buckets=SHORT)
PROPOSED = Counter("ces_revisions_proposed_total", "Revisions of running jobs proposed", ["cause"])


@dataclass(frozen=True)
class _Awaited:
    """A revision that was proposed and not answered yet."""

    revision: str
    cause: RevisionCause
    until: float


class Revisions:
    """Proposes one revision at a time. ``refill_s``: least seconds between two re-optimisations."""

    def __init__(self, bus: Bus, source: str, clock: Clock, refill_s: float) -> None:
        self._bus, self._source, self._clock, self._refill_s = bus, source, clock, refill_s
        self._soundness = Soundness()
        self._awaited: _Awaited | None = None
        self._rejected: dict[RevisionCause, Rejections] = {}  # by cause: re-optimising must not delay rerouting
        self._holders = Holders()
        self._topology: Topology | None = None  # of the nodes within reach: another one too when a node comes back
        self._room = True  # whether capacity may have been freed since the last re-optimisation; unknown at the start
        self._filled_at = -math.inf
        self._without_flows: Offer | None = None  # what was committed when there was nothing to re-optimise

    async def reroute(self, view: StateView, offer: Offer) -> float:
        """Propose other paths and rates for flows whose path is broken or overfull; returns after how many seconds to
        look again unasked. Raises BusError."""
        now = self._clock()
        self._note(view, offer)
        if self._awaited is not None and now >= self._awaited.until:
            self.forget()
        if self._awaited is not None:
            return self._awaited.until - now
        if self._soundness.holds(view, offer):
            return math.inf
        flows = revisable_flows(view, offer)
        if not (flows.broken or flows.crowded):
            return math.inf
        wait_s = self._rejected.get("link", Rejections()).until - now
        if wait_s > 0:
            return wait_s
        await self._propose("link", view.version, flows, reroute)
        return math.inf if self._awaited is None else ANSWER_S

    async def reoptimise(self, view: StateView, offer: Offer) -> float:
        """Propose better rates where capacity may have been freed. To be called after ``reroute``, and only while no
        proposed plan awaits its answer, since its job needs the capacity more. Returns and raises as that does."""
        now = self._clock()
        if self._awaited is not None or not self._room:
            return math.inf
        rejected = (entry.until for entry in self._rejected.values())  # what waits to be rerouted goes first
        wait_s = max([self._filled_at + self._refill_s, *rejected]) - now
        if wait_s > 0:
            return wait_s
        if offer is self._without_flows:
            return math.inf
        flows = revisable_flows(view, offer, better=True)
        if not flows.flows:
            self._without_flows = offer
            return math.inf
        self._room, self._filled_at = False, now
        await self._propose("room", view.version, flows, reoptimise)
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
            count = self._rejected.get(cause, Rejections()).count + 1
            self._rejected[cause] = Rejections(count, self._clock() + backoff_s(count))

    def forget(self) -> None:
        """The proposal came to nothing, or the broker may have lost it: it is worked out again."""
        if self._awaited is not None and self._awaited.cause == "room":
            self._room = True
        self._awaited = None

    def _note(self, view: StateView, offer: Offer) -> None:
        """What re-optimisation is triggered by. Rates and paths are no part of it, so no revision causes another."""
        topology = offer.cluster.topology
        if self._holders.given_back(view):
            self._room = True
        if self._topology is not topology:
            self._room, self._topology = True, topology
            self._rejected.clear()

    async def _propose(self, cause: RevisionCause, version: int, flows: RevisableFlows, settle: Settle) -> None:
        started = time.perf_counter()
        jobs = await asyncio.to_thread(revise, flows, settle)
        seconds = time.perf_counter() - started
        REVISION.labels(cause).observe(seconds)
        if not jobs:
            return
        name = str(ULID())
        revision = RevisionProposed(revision=name, version=version, cause=cause, jobs=jobs)
        event = new_event(self._source, "revision", "proposed", name, revision, datetime.now(UTC), event_id=name)
        self._awaited = _Awaited(name, cause, self._clock() + ANSWER_S)
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
            revision=name,
            cause=cause,
            version=version,
            jobs=len(jobs),
            ms=round(seconds * 1000, 2),
        )
