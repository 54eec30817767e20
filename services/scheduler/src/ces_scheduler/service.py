"""Follow the state, hold a cycle of CES-Multi over the queue whenever one may decide otherwise than the last, propose
what it starts and say why the others wait; first of all, mend what runs where the network under it has changed; last of
all, fill room that nobody waits for."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter, Histogram
from ulid import ULID

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, Delivery, Message, PayloadTooLarge, Reject
from ces_common.messages.base import Message as Model
from ces_common.messages.events import (
    MalformedEvent,
    PlanProposed,
    PlanRefused,
    PlanRejected,
    PreemptionRejected,
    Reason,
    Standing,
    new_event,
    parse_event,
)
from ces_common.messages.queries import PlanQuery, QueueAnswer
from ces_common.messages.records import JobRecord
from ces_common.reading import StateReader
from ces_common.states import ALLOCATION_OVER, JOB_OVER, JOB_WAITS
from ces_core.kernels.jit import COMPILED
from ces_core.multi.recording import Record
from ces_core.solvers.base import foreseeing
from ces_core.solvers.warm import warm_up
from ces_scheduler.deciding import Decision
from ces_scheduler.dryrun import answer_for, guest_of
from ces_scheduler.preemptions import Preemptions
from ces_scheduler.proposals import Clock, Proposals
from ces_scheduler.queueing import NO_NODES, Past, Proposed, look_at, next_look_s, proposed_on, queued
from ces_scheduler.revisions import ANSWERS, Revisions
from ces_scheduler.rounds import Placing, Round, play
from ces_scheduler.standing import Told, is_news
from ces_scheduler.translate import Offer, offer_of

log = structlog.get_logger()
SERVICE = "scheduler"
REJECTIONS = subjects.events("plan", "rejected")
UNMOVED = subjects.events("preemption", "rejected")
EVENTS = [  # what may give a waiting job a place: jobs come and leave, workers are gone, the cluster changes
    REJECTIONS,
    UNMOVED,
    *ANSWERS,
    *(subjects.events("job", state) for state in (*JOB_WAITS, *JOB_OVER)),
    *(subjects.events("allocation", state) for state in ALLOCATION_OVER),
    subjects.events("node"),
    subjects.events("topology"),
    subjects.events("link"),
]
CYCLE = Histogram("ces_queue_cycle_seconds", "Time of one look at the whole queue, its decisions included")
DECISION = Histogram("ces_decision_seconds", "Time of one placement decision", ["outcome"])
PROPOSED = Counter("ces_plans_proposed_total", "Plans proposed")
REJECTED = Counter("ces_plans_rejected_total", "Plans that the manager rejected")
RETRY_S = 1.0
REFILL_S = 5.0
TOLD = 200
"""Waiting jobs that are told how they stand, at most, before the manager has had ``RETRY_S`` to write that down."""


def wall_clock() -> datetime:
    return datetime.now(UTC)


class Scheduler:
    """``refill_s``: see Revisions. ``now``: the time of day, by which jobs have waited and running ones end.
    ``record``: called after each cycle."""

    def __init__(
        self,
        bus: Bus,
        placing: Placing,
        resync_s: float,
        clock: Clock = time.monotonic,
        *,
        now: Callable[[], datetime] = wall_clock,
        refill_s: float = REFILL_S,
        record: Record | None = None,
    ) -> None:
        self._bus, self._placing, self._resync_s, self._clock, self._now = bus, placing, resync_s, clock, now
        self._record = record
        self._compiling = False
        self.reader = StateReader(bus, SERVICE)
        self._committed: Offer | None = None  # the latest offer, for what the next one shares with it
        self._proposals = Proposals(clock)
        self._past: Past | None = None
        self._last: Round | None = None
        self._look_at = -math.inf
        self._told: dict[str, Told] = {}
        self._revisions = Revisions(bus, SERVICE, clock, refill_s)
        self._preemptions = Preemptions(bus, SERVICE, clock)
        bus.on_reconnect(self._reconnected)

    def missing(self) -> str | None:
        """What keeps it from working; None when ready."""
        if self._compiling:
            return "the solver is being compiled"
        return None if self.reader.fresh else "the manager's snapshot"

    async def run(self) -> None:
        await self._warm_up()
        await self._bus.serve(subjects.rpc(SERVICE, "plan"), self._dry_run, queue=SERVICE)
        await self._bus.serve(subjects.rpc(SERVICE, "queue"), self._queue, queue=SERVICE)
        await self.reader.start(EVENTS, self._event)
        wait_s = self._resync_s
        while True:
            await self.reader.wait(wait_s)
            wait_s = await self.step()

    async def step(self) -> float:
        """One look at the state; returns after how many seconds to look again unasked."""
        if not await self.reader.refresh():
            return RETRY_S
        view, offer = self.reader.view, self._offer()
        waiting = self._waiting()
        revision_s = math.inf
        try:
            if offer is not None:
                left = proposed_on(offer, self._proposals.in_flight)
                revision_s = await self._revisions.mend(view, left)
            proposed = await self._decide(waiting, offer)
            if offer is not None and not (proposed or self._proposals.in_flight or self._preemptions):
                revision_s = min(revision_s, await self._revisions.refill(view, offer))
        except BusError as error:
            log.warning("what was decided could not be announced", error=str(error))
            self._look_at = -math.inf
            return RETRY_S
        wait_s = max(0.0, min(self._resync_s, revision_s, self._look_at - self._clock()))
        return min(RETRY_S, wait_s) if self._proposals else wait_s

    async def _decide(self, waiting: list[JobRecord], offer: Offer | None) -> int:
        """Hold a cycle if there is any use in it. Returns how many plans were proposed. Raises BusError."""
        version = self.reader.view.version
        if offer is None:
            self._past = self._last = None
            for job in waiting:
                await self._refuse(job, NO_NODES, None, version)
            return 0
        placing = replace(self._placing, parameters=self._preemptions.admitted(self._placing.parameters))
        started, proposed = time.perf_counter(), self._proposals.in_flight
        question = (waiting, offer, proposed, self._now(), placing.parameters, self._past, placing.paths)
        look = await asyncio.to_thread(look_at, *question)
        if not look.news and self._clock() < self._look_at:
            return 0
        for name in look.lost:
            log.info("room is no longer kept: the plan is not possible any more", job=name)
        played = await asyncio.to_thread(play, version, look, placing, self._record)
        self._past, self._last = played.past, played
        later_s = next_look_s(look, played.decisions, placing.parameters)
        self._look_at = self._clock() + min(self._resync_s, math.inf if later_s is None else max(later_s, RETRY_S))
        CYCLE.observe(time.perf_counter() - started)
        for name, decision in played.starts.items():
            await self._propose(look.records[name], decision, version)
        answer_s = await self._preemptions.propose(played.decisions.preempted, look, version)
        self._look_at = min(self._look_at, self._clock() + answer_s)
        for name, entry in look.entries.items():
            if entry.reason is not None:
                await self._refuse(look.records[name], entry.reason, None, version)
        told = 0
        for standing in await asyncio.to_thread(lambda: played.standings):
            if told == TOLD:
                self._look_at = self._clock() + RETRY_S
                break
            if standing.reason is not None:
                told += await self._refuse(look.records[standing.job], standing.reason, standing, version)
        for name in played.decisions.refused:
            if name in played.asking.spent_ms:
                DECISION.labels("no-place").observe(played.asking.spent_ms[name] / 1000)
        if played.decisions.more:
            self.reader.hint.set()
        return len(played.starts)

    async def _warm_up(self) -> None:
        """Have everything compiled before the first decision: it can take longer than a job should wait for a place."""
        self._compiling = True
        started, solver = time.perf_counter(), self._placing.solver
        try:
            await asyncio.to_thread(warm_up, solver)
            await asyncio.to_thread(warm_up, foreseeing(solver))
        except Exception:  # jobs will be told the same; another one may go well
            log.exception("the solver failed while it was warmed up", solver=solver.name)
        self._compiling = False
        seconds = round(time.perf_counter() - started, 2)
        log.info("the solver is ready", solver=solver.name, compiled=COMPILED, seconds=seconds)

    def _offer(self) -> Offer | None:
        """What is committed. None while there are no nodes."""
        if self.reader.view.nodes:
            self._committed = offer_of(self.reader.view, self._committed)
        return self._committed if self.reader.view.nodes else None

    def _waiting(self) -> list[JobRecord]:
        """The queued jobs that may be proposed now; what is settled is forgotten."""
        waiting = queued(self.reader.view.jobs.values())
        self._proposals.settle(waiting)
        attempts = {job.id: job.attempt for job in waiting}
        self._told = {job: told for job, told in self._told.items() if attempts.get(job) == told.attempt}
        return self._proposals.due(waiting)

    async def _propose(self, job: JobRecord, decision: Decision, version: int) -> None:
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
        try:
            await self._publish("proposed", job, plan, plan.plan)
        except PayloadTooLarge as error:
            log.error("a plan is too large to be proposed", job=job.id, error=str(error))
            text = f"its plan does not fit in one message: {error}"
            await self._refuse(job, Reason(code="plan-too-large", text=text, forever=True), None, version)
            self._proposals.impossible(job)
            return
        self._proposals.made(plan.plan, Proposed(job, decision.assignments, decision.flows))
        self._told.pop(job.id, None)
        PROPOSED.inc()
        DECISION.labels("placed").observe(decision.decision_ms / 1000)
        log.info("plan proposed", job=job.id, plan=plan.plan, version=plan.version, ms=round(decision.decision_ms, 2))

    async def _refuse(self, job: JobRecord, reason: Reason, standing: Standing | None, version: int) -> bool:
        """Whether that is news, and was told. Raises BusError."""
        told = Told.of(job.attempt, reason, standing, self._now())
        if not is_news(told, self._told.get(job.id)):
            return False
        refused = PlanRefused(job=job.id, attempt=job.attempt, version=version, reason=reason, standing=standing)
        await self._publish("refused", job, refused)
        self._told[job.id] = told  # only now: it must not count as said before it is
        log.info("no place for a job", job=job.id, version=version, reason=reason.text)
        return True

    async def _publish(self, kind: str, job: JobRecord, data: Model, event_id: str | None = None) -> None:
        event = new_event(SERVICE, "plan", kind, job.id, data, self._now(), event_id=event_id)
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)

    def _event(self, delivery: Delivery) -> None:
        if not any(subjects.matches(pattern, delivery.subject) for pattern in (REJECTIONS, UNMOVED, *ANSWERS)):
            return
        try:
            data = parse_event(delivery.data).data
        except MalformedEvent as error:
            raise Reject(str(error)) from error
        if isinstance(data, PlanRejected):
            REJECTED.inc()
            log.info("a plan was rejected", job=data.job, plan=data.plan, reason=data.reason)
            self._proposals.rejected(data)
        elif isinstance(data, PreemptionRejected):
            self._preemptions.rejected(data)
            self._look_at = -math.inf
        else:
            self._revisions.answered(data)

    async def _queue(self, _: Message) -> bytes:
        """How those stand that went on waiting after the last cycle; version 0 where there was none."""
        last = self._last
        if last is None:
            return QueueAnswer(version=0).encode()
        standings = await asyncio.to_thread(lambda: last.standings)
        return QueueAnswer(version=last.version, standings=standings).encode()

    async def _dry_run(self, message: Message) -> bytes:
        query = PlanQuery.model_validate_json(message.data)
        await self.reader.refresh()
        guest = guest_of(query.job, self._now())
        waiting, offer, version = self._waiting(), self._offer(), self.reader.view.version
        question = (guest, version, waiting, offer, self._proposals.in_flight, self._past, self._placing)
        return (await asyncio.to_thread(answer_for, *question)).encode()

    async def _reconnected(self) -> None:
        """The broker may have lost what was proposed. The manager takes no plan twice."""
        self._proposals.forget()
        self._revisions.forget()
        self._preemptions.forget()
        self._look_at = -math.inf
        self.reader.hint.set()
