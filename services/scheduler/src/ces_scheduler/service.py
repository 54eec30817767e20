"""Follow the state, propose a plan for each waiting job that has a place, say why the others have none; first of all,
mend what runs where the network under it has changed; last of all, fill room that nobody waits for."""

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
from ces_common.bus.port import Bus, BusError, Delivery, Message, PayloadTooLarge, Reject
from ces_common.messages.events import (
    MalformedEvent,
    PlanProposed,
    PlanRefused,
    PlanRejected,
    Reason,
    new_event,
    parse_event,
)
from ces_common.messages.queries import PlanAnswer, PlanQuery
from ces_common.messages.records import JobRecord
from ces_common.reading import StateReader
from ces_common.states import ALLOCATION_OVER, JOB_OVER
from ces_core.kernels.jit import COMPILED
from ces_core.solvers import Solver
from ces_core.solvers.warm import warm_up
from ces_scheduler.backoff import backoff_s
from ces_scheduler.deciding import Decision, decide, queue_order, share_of
from ces_scheduler.revisions import ANSWERS, Revisions
from ces_scheduler.translate import Offer, Usage, offer_of

log = structlog.get_logger()
SERVICE = "scheduler"
REJECTIONS = subjects.events("plan", "rejected")
EVENTS = [  # what may give a waiting job a place: jobs come and leave, workers are gone, the cluster changes
    REJECTIONS,
    *ANSWERS,
    *(subjects.events("job", state) for state in ("queued", *JOB_OVER)),
    *(subjects.events("allocation", state) for state in ALLOCATION_OVER),
    subjects.events("node"),
    subjects.events("topology"),
    subjects.events("link"),
]
DECISION = Histogram("ces_decision_seconds", "Time of one placement decision", ["outcome"])
PROPOSED = Counter("ces_plans_proposed_total", "Plans proposed")
REJECTED = Counter("ces_plans_rejected_total", "Plans that the manager rejected")
RETRY_S = 1.0
REFILL_S = 5.0
IN_FLIGHT_S = 20.0  # after this long without an answer a proposal counts as lost: the manager may be busy
PER_STEP = 64  # proposals before the state is read again
Clock = Callable[[], float]  # seconds, steady


@dataclass(frozen=True)
class InFlight:
    plan: str
    attempt: int
    usage: Usage
    offer: Offer  # whose columns the usage is in
    until: float


@dataclass(frozen=True)
class Refused:
    attempt: int
    reason: Reason
    offer: Offer | None


@dataclass(frozen=True)
class Rejected:
    """A job whose plans the manager does not take, though they fit as far as can be seen from here."""

    attempt: int
    count: int
    until: float  # not tried before


class Scheduler:
    """``time_limit_s``: how long the jobs that wait at one time may take together to be placed; None: as the solver
    sees fit. ``fallback``: why the solver is not the one that was asked for; every plan says so. ``refill_s``: see
    Revisions. ``paths``: flows of new jobs may take any of so many shortest paths; None: any hop-shortest one."""

    def __init__(
        self,
        bus: Bus,
        solver: Solver,
        resync_s: float,
        clock: Clock = time.monotonic,
        *,
        time_limit_s: float | None = None,
        fallback: str | None = None,
        refill_s: float = REFILL_S,
        paths: int | None = None,
    ) -> None:
        self._bus, self._solver, self._resync_s, self._clock = bus, solver, resync_s, clock
        self._time_limit_s, self._fallback, self._paths = time_limit_s, fallback, paths
        self._compiling = False
        self.reader = StateReader(bus, SERVICE)
        self._committed: Offer | None = None  # the latest offer, for what the next one shares with it
        self._in_flight: dict[str, InFlight] = {}
        self._refused: dict[str, Refused] = {}
        self._rejected: dict[str, Rejected] = {}
        self._revisions = Revisions(bus, SERVICE, clock, refill_s)
        bus.on_reconnect(self._reconnected)

    def missing(self) -> str | None:
        """What keeps it from working; None when ready."""
        if self._compiling:
            return "the solver is being compiled"
        return None if self.reader.fresh else "the manager's snapshot"

    async def run(self) -> None:
        await self._warm_up()
        await self._bus.serve(subjects.rpc(SERVICE, "plan"), self._dry_run, queue=SERVICE)
        await self.reader.start(EVENTS, self._event)
        wait_s = self._resync_s
        while True:
            await self.reader.wait(wait_s)
            wait_s = await self.step()

    async def step(self) -> float:
        """One look at the queue; returns after how many seconds to look again unasked."""
        if not await self.reader.refresh():
            return RETRY_S
        self._forget_settled()
        version, offer = self.reader.view.version, self._offer()
        revision_s = math.inf
        if offer is not None:
            try:
                revision_s = await self._revisions.mend(self.reader.view, offer)
            except BusError as error:
                log.warning("a revision could not be announced", error=str(error))
                return RETRY_S
        due = [job for job in queue_order(self.reader.view.jobs.values()) if self._is_due(job, offer)]
        time_limit_s = share_of(self._time_limit_s, len(due))
        proposed = 0
        for job in due:
            if proposed == PER_STEP:
                self.reader.hint.set()
                break
            try:
                decision = await self._decide(job, offer, time_limit_s)
                if decision.usage is not None and offer is not None:
                    await self._propose(job, decision, version, offer, decision.usage)
                    offer = offer.less(decision.usage)
                    proposed += 1
                elif decision.reason is not None:
                    DECISION.labels("no-place").observe(decision.decision_ms / 1000)
                    await self._refuse(job, decision.reason, version, offer)
            except PayloadTooLarge as error:
                log.error("a plan is too large to be proposed", job=job.id, error=str(error))
                reason = Reason(
                    code="plan-too-large", text=f"its plan does not fit in one message: {error}", forever=True
                )
                await self._refuse(job, reason, version, offer)
            except BusError as error:
                log.warning("a decision could not be announced", job=job.id, error=str(error))
                return RETRY_S
        if offer is not None and not (proposed or self._in_flight):
            try:
                revision_s = min(revision_s, await self._revisions.refill(self.reader.view, offer))
            except BusError as error:
                log.warning("a re-fill could not be announced", error=str(error))
                return RETRY_S
        wait_s = min(self._resync_s, revision_s)
        return min(RETRY_S, wait_s) if self._in_flight or self._rejected else wait_s

    async def _warm_up(self) -> None:
        """Have everything compiled before the first decision: it can take longer than a job should wait for a place."""
        self._compiling = True
        started = time.perf_counter()
        try:
            await asyncio.to_thread(warm_up, self._solver)
        except Exception:  # jobs will be told the same; another one may go well
            log.exception("the solver failed while it was warmed up", solver=self._solver.name)
        self._compiling = False
        seconds = round(time.perf_counter() - started, 2)
        log.info("the solver is ready", solver=self._solver.name, compiled=COMPILED, seconds=seconds)

    async def _decide(self, job: JobRecord, offer: Offer | None, time_limit_s: float | None) -> Decision:
        """A solver that fails on one job must not keep the others waiting."""
        question = (job.name, job.tasks, job.flows, offer, self._solver, time.perf_counter)
        try:
            decision = await asyncio.to_thread(
                decide,
                *question,
                seed=job.attempt,
                time_limit_s=time_limit_s,
                fallback=self._fallback,
                paths=self._paths,
            )
        except Exception as error:
            log.exception("the solver failed", job=job.id, solver=self._solver.name)
            text = f"solver {self._solver.name} failed on it: {error}"
            reason = Reason(code="solver-failed", text=text)
            return Decision(self._solver.name, 0.0, job.attempt, time_limit_s, reason=reason, fallback=self._fallback)
        if decision.fallback != self._fallback:
            log.warning("a decision was made without the policy", job=job.id, reason=decision.fallback)
        return decision

    def _offer(self) -> Offer | None:
        """What is committed, less what is proposed and not yet answered. None while there are no nodes."""
        if not self.reader.view.nodes:
            return None
        offer = self._committed = offer_of(self.reader.view, self._committed)
        for waiting in self._in_flight.values():
            if waiting.offer.cluster.topology is offer.cluster.topology:
                offer = offer.less(waiting.usage)
        return offer

    def _forget_settled(self) -> None:
        queued = {job.id: job.attempt for job in queue_order(self.reader.view.jobs.values())}
        now = self._clock()
        self._in_flight = {
            job: entry
            for job, entry in self._in_flight.items()
            if queued.get(job) == entry.attempt and now < entry.until
        }
        self._refused = {job: entry for job, entry in self._refused.items() if queued.get(job) == entry.attempt}
        self._rejected = {job: entry for job, entry in self._rejected.items() if queued.get(job) == entry.attempt}

    def _is_due(self, job: JobRecord, offer: Offer | None) -> bool:
        return not (job.id in self._in_flight or self._backs_off(job) or self._pointless(job, offer))

    def _backs_off(self, job: JobRecord) -> bool:
        rejected = self._rejected.get(job.id)
        return rejected is not None and self._clock() < rejected.until

    def _pointless(self, job: JobRecord, offer: Offer | None) -> bool:
        """Whether nothing has changed for the better since the job last found no place."""
        last = self._refused.get(job.id)
        if last is None:
            return False
        if last.offer is None or offer is None:
            return last.offer is offer
        return offer.nothing_freed_since(last.offer)

    async def _propose(self, job: JobRecord, decision: Decision, version: int, offer: Offer, usage: Usage) -> None:
        plan = PlanProposed(
            plan=str(ULID()),
            job=job.id,
            attempt=job.attempt,
            version=version,
            solver=decision.solver,
            assignments=decision.assignments,
            flows=decision.flows,
            metrics=decision.metrics,
            considered=decision.considered(),
        )
        event = new_event(SERVICE, "plan", "proposed", job.id, plan, datetime.now(UTC), event_id=plan.plan)
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
        self._in_flight[job.id] = InFlight(plan.plan, job.attempt, usage, offer, self._clock() + IN_FLIGHT_S)
        self._refused.pop(job.id, None)
        PROPOSED.inc()
        DECISION.labels("placed").observe(decision.decision_ms / 1000)
        log.info("plan proposed", job=job.id, plan=plan.plan, version=plan.version, ms=round(decision.decision_ms, 2))

    async def _refuse(self, job: JobRecord, reason: Reason, version: int, offer: Offer | None) -> None:
        last = self._refused.get(job.id)
        if last is None or last.reason != reason:
            refused = PlanRefused(job=job.id, attempt=job.attempt, version=version, reason=reason)
            event = new_event(SERVICE, "plan", "refused", job.id, refused, datetime.now(UTC))
            await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
            log.info("no place for a job", job=job.id, version=version, reason=reason.text)
        self._refused[job.id] = Refused(job.attempt, reason, offer)  # only now: it must not count as said before it is

    def _event(self, delivery: Delivery) -> None:
        if not any(subjects.matches(pattern, delivery.subject) for pattern in (REJECTIONS, *ANSWERS)):
            return
        try:
            data = parse_event(delivery.data).data
        except MalformedEvent as error:
            raise Reject(str(error)) from error
        if isinstance(data, PlanRejected):
            self._plan_rejected(data)
        else:
            self._revisions.answered(data)

    def _plan_rejected(self, data: PlanRejected) -> None:
        REJECTED.inc()
        log.info("a plan was rejected", job=data.job, plan=data.plan, reason=data.reason)
        entry = self._in_flight.get(data.job)
        if entry is not None and entry.plan == data.plan:  # not another scheduler's, nor an earlier one
            del self._in_flight[data.job]
            before = self._rejected.get(data.job)
            count = before.count + 1 if before is not None and before.attempt == data.attempt else 1
            self._rejected[data.job] = Rejected(data.attempt, count, self._clock() + backoff_s(count))

    async def _dry_run(self, message: Message) -> bytes:
        query = PlanQuery.model_validate_json(message.data)
        await self.reader.refresh()
        version = self.reader.view.version
        decision = await asyncio.to_thread(
            decide,
            query.job.name,
            query.job.expand_tasks(),
            query.job.expand_flows(),
            self._offer(),
            self._solver,
            time.perf_counter,
            seed=1,
            time_limit_s=self._time_limit_s,
            fallback=self._fallback,
            paths=self._paths,
        )
        return PlanAnswer(
            feasible=decision.reason is None,
            version=version,
            solver=decision.solver,
            assignments=decision.assignments,
            flows=decision.flows,
            metrics=decision.metrics,
            bound=decision.bound,
            reason=decision.reason,
            refused=decision.refused,
            decision_ms=decision.decision_ms,
            time_limit_s=decision.time_limit_s,
            seed=decision.seed,
            policy=decision.policy,
            fallback=decision.fallback,
        ).encode()

    async def _reconnected(self) -> None:
        """The broker may have lost what was proposed. The manager takes no plan twice."""
        self._in_flight.clear()
        self._revisions.forget()
        self.reader.hint.set()
