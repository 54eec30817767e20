"""The scheduler's loop: follow the manager's state, and after each change reroute running flows if the network under
them has changed, hold a cycle over the queue, propose what it starts, report why the others wait, and at last
re-optimise running flows if nobody waits for the capacity."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter, Histogram
from ulid import ULID

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, Message, PayloadTooLarge
from ces_common.health import COMPILING
from ces_common.messages.events import MalformedEvent, Reason, new_event, parse_event
from ces_common.messages.plans import CpuRejected, PlanProposed, PlanRejected, PreemptionRejected, ResizeRejected
from ces_common.messages.queries import DrainAnswer, DrainQuery, PlanQuery, QueueAnswer
from ces_common.messages.records import JobRecord
from ces_common.messages.speeds import SpeedAnswer, SpeedQuery
from ces_common.metrics import SHORT
from ces_common.state_reader import StateReader
from ces_common.state_view import StateView
from ces_common.states import ALLOCATION_OVER, JOB_OVER, JOB_WAITS, JobState
from ces_common.tracing import headers
from ces_core.queue.record import Record
from ces_scheduler.compilation import compile_ahead
from ces_scheduler.cpu_amounts import CpuAmounts
from ces_scheduler.cycle_input import NO_NODES, LastCycle, Proposed, Question, cycle_input, next_look_s, proposed_on
from ces_scheduler.cycle_run import CycleRun, Placing, blocked, run_cycle, startable
from ces_scheduler.cycle_trace import CycleTrace
from ces_scheduler.deadlines import Deadlines
from ces_scheduler.decision import Decision
from ces_scheduler.dry_run import answer_for, guest_of
from ces_scheduler.elsewhere import places_elsewhere
from ces_scheduler.live_policy import LivePolicy
from ces_scheduler.needed_sizes import NeededSizes
from ces_scheduler.offer import Offer, offer_of
from ces_scheduler.preemptions import Preemptions
from ces_scheduler.proposals import Clock, Proposals
from ces_scheduler.questions import handlers
from ces_scheduler.resizes import Resizes
from ces_scheduler.revisions import ANSWERS, Revisions
from ces_scheduler.start_amounts import StartAmounts
from ces_scheduler.start_cpu import begins_with
from ces_scheduler.status_reports import StatusReports
from ces_scheduler.waiting_jobs import WaitingJobs

log = structlog.get_logger()
SERVICE = "scheduler"
PLAN_REJECTIONS = subjects.events("plan", "rejected")
PREEMPTION_REJECTIONS = subjects.events("preemption", "rejected")
RESIZE_REJECTIONS = subjects.events("resize", "rejected")
CPU_REJECTIONS = subjects.events("cpu", "rejected")
EVENTS = [  # what may give a waiting job a place: jobs come and leave, workers are gone, the cluster changes
    PLAN_REJECTIONS,
    PREEMPTION_REJECTIONS,
    RESIZE_REJECTIONS,
    CPU_REJECTIONS,
    *ANSWERS,
    *(subjects.events("cpu", change) for change in ("committed", "released")),
    *(subjects.events(*each) for each in (("resize", "ended"), ("move", "changed"))),
    *(subjects.events("job", state) for state in (*JOB_WAITS, JobState.ELSEWHERE, *JOB_OVER)),
    *(subjects.events("allocation", state) for state in ALLOCATION_OVER),
    subjects.events("node"),
    subjects.events("topology"),
    subjects.events("link"),
]
CYCLE = Histogram("ces_queue_cycle_seconds", "Time of one look at the whole queue, with decisions", buckets=SHORT)
DECISION = Histogram("ces_decision_seconds", "Time of one placement decision", ["outcome"], buckets=SHORT)
PROPOSED = Counter("ces_plans_proposed_total", "Plans proposed")
RETRY_S, REFILL_S, RESIZE_S = 1.0, 5.0, 60.0
REPORTS_AT_ONCE = 200  # waiting jobs, before the manager has had ``RETRY_S`` to write that down


def wall_clock() -> datetime:
    return datetime.now(UTC)


class Scheduler:
    """``refill_s``: see Revisions; ``resize_s``: see Resizes, CpuAmounts. ``now``: the time of day, by which jobs have
    waited and running ones end. ``record``: called after each cycle. ``live``: the policy that evolves, if one does."""

    def __init__(
        self,
        bus: Bus,
        placing: Placing,
        resync_s: float,
        clock: Clock = time.monotonic,
        *,
        now: Callable[[], datetime] = wall_clock,
        refill_s: float = REFILL_S,
        resize_s: float = RESIZE_S,
        record: Record | None = None,
        live: LivePolicy | None = None,
    ) -> None:
        self._bus, self._placing, self._resync_s, self._clock, self._now = bus, placing, resync_s, clock, now
        self._record, self._live = record, live
        self._compiling = False
        self.reader = StateReader(bus)
        self._committed: Offer | None = None  # the latest offer, for what the next one shares with it
        self._last: LastCycle | None = None
        self._run: CycleRun | None = None  # the latest one
        self._cycle_due = -math.inf
        self._unchanged: Question | None = None  # one to which the last look brought nothing new
        self._queued = WaitingJobs()
        self._let_in: tuple[list[JobRecord], Collection[str], list[JobRecord]] | None = None  # of whom, without whom
        self._proposals = Proposals(clock)
        self._reports = StatusReports(bus, SERVICE, now)
        self._revisions = Revisions(bus, SERVICE, clock, refill_s)
        self._preemptions = Preemptions(bus, SERVICE, clock)
        self._deadlines = Deadlines(bus, SERVICE, clock, now)
        self._needed = NeededSizes()
        self._resizes = Resizes(bus, SERVICE, clock, now, resize_s)
        self._amounts = CpuAmounts(bus, SERVICE, clock, resize_s)
        self._starts = StartAmounts(placing.amounts, placing.parameters)
        bus.on_reconnect(self._reconnected)

    def missing(self) -> str | None:
        """What keeps it from working; None when ready."""
        if self._compiling:
            return COMPILING
        return None if self.reader.fresh else "the manager's snapshot"

    async def run(self) -> None:
        await self._warm_up()
        asked = handlers(self.reader, self._offer, self._placing, self._live)
        asked |= (("plan", self._dry_run), ("queue", self._queue), ("speed", self._speed), ("drain", self._drain))
        for name, answer in asked.items():
            await self._bus.serve(subjects.rpc(SERVICE, name), answer, queue=SERVICE)
        await self.reader.start(EVENTS, self._event)
        wait_s = self._resync_s
        while True:
            await self.reader.wait(wait_s)
            wait_s = await self.step()

    # A job's way through the scheduler, from the state to a proposal or a report

    async def step(self) -> float:
        """One look at the state and what follows from it; returns after how many seconds to look again unasked."""
        if not await self.reader.refresh():
            return RETRY_S
        if self._live is not None:
            self._placing = await asyncio.to_thread(self._live.placing, self._placing)
        view, offer = self.reader.view, self._offer()
        waiting, version = self._waiting(), view.version
        revision_s = math.inf
        try:
            if offer is None:
                await self._without_nodes(waiting, version)
            else:
                left = proposed_on(offer, self._proposals.in_flight)
                revision_s = await self._revisions.reroute(view, left)
                waiting, deadline_s = await self._admitted(waiting, offer, version)
                revision_s = min(revision_s, deadline_s)
                waiting = self._needed.of(waiting, self._deadlines.judgement)
                waiting, patience_s = self._starts.of(waiting, offer, self._now())
                revision_s = min(revision_s, patience_s)
                started = await self._decide(waiting, self._resizes.kept_free(offer), version)
                if not (started or self._proposals.in_flight or self._preemptions):
                    revision_s = min(revision_s, await self._revisions.reoptimise(view, offer))
                    if not self._proposals.absent:
                        revision_s = min(revision_s, await self._resize(view, offer))
        except BusError as error:
            log.warning("what was decided could not be announced", error=str(error))
            self._cycle_due = -math.inf
            return RETRY_S
        wait_s = max(0.0, min(self._resync_s, revision_s, self._cycle_due - self._clock()))
        return min(RETRY_S, wait_s) if self._proposals else wait_s

    async def _resize(self, view: StateView, offer: Offer) -> float:
        """Propose another size of a job, or another amount of CPU for its workers. For a job that waits, amounts go
        first: they cost nobody a restart. Where nobody waits, workers do. Raises BusError."""
        run, placing, due_s = self._run, self._placing, math.inf
        waits = run is not None and blocked(run.given, run.decisions)
        first = self._amounts.comes_first(view, offer)
        for amounts in (True, False) if waits else (False, True):
            if amounts:
                left = self._resizes.kept_free(offer)
                due_s = min(due_s, await self._amounts.look(view, offer, left, run, placing))
                if self._amounts.busy or self._amounts.makes_room:
                    break
            else:
                due_s = min(due_s, await self._resizes.look(view, offer, run, placing, self._deadlines.judgement))
                if self._resizes.busy:
                    break
        if first and placing.parameters.preemption is not None and not self._amounts.comes_first(view, offer):
            self._cycle_due = -math.inf  # now others may be preempted
            self.reader.hint.set()
        return due_s

    def _offer(self) -> Offer | None:
        """What is committed. None while there are no nodes."""
        if self.reader.view.nodes:
            self._committed = offer_of(self.reader.view, self._committed)
        return self._committed if self.reader.view.nodes else None

    def _waiting(self) -> list[JobRecord]:
        """The queued jobs that may be proposed now; what is settled is forgotten."""
        changed = self._queued.look(self.reader.view)
        self._proposals.settle(self._queued.jobs)
        self._reports.settle(self._queued.jobs, changed)
        return self._queued.but(self._proposals.absent)

    async def _admitted(self, waiting: list[JobRecord], offer: Offer, version: int) -> tuple[list[JobRecord], float]:
        """The waiting jobs but for those that are not admitted, and after how many seconds to judge deadlines again.
        Raises BusError."""
        queued = self._queued.jobs
        asked = startable(queued, self._run)
        wait_s = await self._deadlines.look(self.reader.view, offer, asked, self._placing.parameters, version)
        held_back = self._deadlines.held_back
        if not held_back:
            return waiting, wait_s
        for name, reason in list(self._deadlines.reasons()):
            record = queued.get(name)  # a question that came meanwhile may have taken in a newer state
            if record is not None:
                await self._reports.report(record, reason, None, version)
        if self._let_in is None or self._let_in[0] is not waiting or self._let_in[1] != held_back:
            self._let_in = waiting, held_back, [job for job in waiting if job.id not in held_back]
        return self._let_in[2], wait_s

    async def _without_nodes(self, waiting: list[JobRecord], version: int) -> None:
        """Raises BusError."""
        self._last = self._run = None
        for job in waiting:
            await self._reports.report(job, NO_NODES, None, version)

    async def _decide(self, waiting: list[JobRecord], offer: Offer, version: int) -> int:
        """Hold a cycle if it may decide otherwise than the last one, and announce what it decided; returns how many
        jobs it starts. ``version``: of the state that the jobs and the offer are of; the view may have moved on.
        Raises BusError."""
        if not (waiting or self._preemptions) and self._last is not None and self._last.done:
            self._cycle_due = self._clock() + self._resync_s
            return 0
        parameters = self._preemptions.admitted(self._placing.parameters)
        if self._committed is not None and self._amounts.comes_first(self.reader.view, self._committed):
            parameters = replace(parameters, preemption=None)
        placing = replace(self._placing, parameters=parameters)
        began, proposed = time.perf_counter(), self._proposals.in_flight
        preempting, pressing = self._preemptions.awaited, self._deadlines.judgement.pressing
        asked = Question(waiting, offer, proposed, placing.parameters, self._last, preempting, pressing)
        if asked.same_as(self._unchanged) and self._clock() < self._cycle_due:
            return 0
        question = (waiting, offer, proposed, self._now(), placing.parameters, self._last, placing.paths)
        given = await asyncio.to_thread(cycle_input, *question, preempting, pressing)
        if not given.news and self._clock() < self._cycle_due:
            self._unchanged = asked
            return 0
        for name in given.lost:
            log.info("room is no longer kept: the plan is not possible any more", job=name)
        run = await asyncio.to_thread(run_cycle, version, given, placing, self._record, self._deadlines.judgement)
        self._last, self._run = run.last, run
        later_s = next_look_s(given, run.decisions, placing.parameters)
        self._cycle_due = self._clock() + min(self._resync_s, math.inf if later_s is None else max(later_s, RETRY_S))
        CYCLE.observe(time.perf_counter() - began)
        traced = CycleTrace(run.started.values(), self.reader.context_of, time.perf_counter() - began)
        for name, decision in run.starts.items():
            await self._propose(run.started[name], decision, version, traced)
        traced.end()
        if self._live is not None:
            await asyncio.to_thread(self._live.decided, run, self._now().timestamp())
        answer_s = await self._preemptions.propose(run.decisions.preempted, given, version, preempting)
        self._cycle_due = min(self._cycle_due, self._clock() + answer_s)
        await self._report(run)
        if self._starts.give_up(run.hopeless) or run.decisions.more:
            self.reader.hint.set()
        return len(run.starts)

    async def _propose(self, job: JobRecord, decision: Decision, version: int, traced: CycleTrace) -> None:
        """Raises BusError."""
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
            size=job.size if job.state is JobState.QUEUED else None,
            cpu=begins_with(job) if job.state is JobState.QUEUED else None,
            cards=decision.cards,
        )
        at, traceparent = self._now(), traced.context_of(job)
        event = new_event(SERVICE, "plan", "proposed", job.id, plan, at, event_id=plan.plan, traceparent=traceparent)
        sent = (event.bus_subject, event.encode())
        try:
            await self._bus.publish_fact(*sent, message_id=event.id, headers=headers(traceparent))
        except PayloadTooLarge as error:
            log.error("a plan is too large to be proposed", job=job.id, error=str(error))
            text = f"its plan does not fit in one message: {error}"
            await self._reports.report(job, Reason(code="plan-too-large", text=text, forever=True), None, version)
            self._proposals.impossible(job)
            return
        traced.proposed(job, decision)
        self._proposals.made(plan.plan, Proposed(job, decision.assignments, decision.flows, decision.cards))
        self._reports.forget(job.id)
        PROPOSED.inc()
        DECISION.labels("placed").observe(decision.decision_ms / 1000)
        log.info("plan proposed", job=job.id, plan=plan.plan, version=plan.version, ms=round(decision.decision_ms, 2))

    async def _report(self, run: CycleRun) -> None:
        """Report why jobs wait, first the jobs that could not take part in the cycle. Raises BusError."""
        records = run.given.records
        for name, entry in run.given.entries.items():
            if entry.reason is not None:
                await self._reports.report(records[name], entry.reason, None, run.version)
        reported = 0
        for status in await asyncio.to_thread(lambda: run.statuses):
            if reported == REPORTS_AT_ONCE:
                self._cycle_due = self._clock() + RETRY_S
                break
            if status.reason is not None:
                reported += await self._reports.report(records[status.job], status.reason, status, run.version)
        for name in run.decisions.refused:
            if name in run.calls.spent_ms:
                DECISION.labels("no-place").observe(run.calls.spent_ms[name] / 1000)

    # The manager's answers, and questions

    def _event(self, message: Message) -> None:
        """Answers go to all schedulers; each knows its own proposals by their ids."""
        answers = (PLAN_REJECTIONS, PREEMPTION_REJECTIONS, RESIZE_REJECTIONS, CPU_REJECTIONS, *ANSWERS)
        if not any(subjects.matches(pattern, message.subject) for pattern in answers):
            return
        try:
            data = parse_event(message.data).data
        except MalformedEvent as error:
            log.warning("an answer cannot be read", subject=message.subject, error=str(error))
            return
        if isinstance(data, PlanRejected):
            if self._proposals.rejected(data):
                log.info("a plan was rejected", job=data.job, plan=data.plan, reason=data.reason)
        elif isinstance(data, PreemptionRejected):
            if self._preemptions.rejected(data):
                self._cycle_due = -math.inf
        elif isinstance(data, ResizeRejected):
            self._resizes.rejected(data)
        elif isinstance(data, CpuRejected):
            self._amounts.rejected(data)
        else:
            self._revisions.answered(data)

    async def _queue(self, _: Message) -> bytes:
        """The status of the jobs that went on waiting after the last cycle; version 0 where there was none."""
        run = self._run
        if run is None:
            return QueueAnswer(version=0).encode()
        statuses = await asyncio.to_thread(lambda: run.statuses)
        return QueueAnswer(version=run.version, statuses=statuses).encode()

    async def _speed(self, message: Message) -> bytes:
        query = SpeedQuery.model_validate_json(message.data)
        return SpeedAnswer(rates=self._resizes.rates(self.reader.view, query.job)).encode()

    async def _dry_run(self, message: Message) -> bytes:
        query = PlanQuery.model_validate_json(message.data)
        await self.reader.refresh()
        guest = guest_of(query.job, self._now())
        waiting, offer, version = self._waiting(), self._offer(), self.reader.view.version
        waiting = [job for job in waiting if job.id not in self._deadlines.not_admitted]
        if offer is not None:
            waiting, guest = self._starts.as_given(waiting), self._starts.alone(guest, offer)
        question = (guest, version, waiting, offer, self._proposals.in_flight, self._last, self._placing)
        beside = self._preemptions.awaited, self._deadlines.judgement
        return (await asyncio.to_thread(answer_for, *question, *beside)).encode()

    async def _drain(self, message: Message) -> bytes:
        query = DrainQuery.model_validate_json(message.data)
        await self.reader.refresh()
        offer, version = self._offer(), self.reader.view.version
        if offer is None:
            return DrainAnswer(version=version).encode()
        return (await asyncio.to_thread(places_elsewhere, query.node, version, offer, self._placing)).encode()

    # Beginnings

    async def _warm_up(self) -> None:
        """Have everything compiled before the first decision: it can take longer than a job should wait for a place."""
        self._compiling = True
        await compile_ahead(self._placing.solver)
        self._compiling = False

    async def _reconnected(self) -> None:
        """The broker may have lost what was proposed. The manager takes no plan twice."""
        self._proposals.forget()
        self._revisions.forget()
        self._preemptions.forget()
        self._deadlines.forget()
        self._cycle_due = -math.inf
        self.reader.hint.set()
