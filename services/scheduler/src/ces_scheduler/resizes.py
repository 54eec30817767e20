"""Proposals to let running malleable jobs go to another size, and the answers they wait for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter
from ulid import ULID

from ces_common.bus.port import Bus
from ces_common.messages.events import new_event
from ces_common.messages.plans import ResizeProposed, ResizeRejected
from ces_common.messages.records import JobRecord
from ces_common.state_view import StateView
from ces_common.states import JobState
from ces_core.model.topology import Topology
from ces_core.queue.jobs import owed_to
from ces_scheduler.card_choice import CardRoom, cards_for
from ces_scheduler.cycle_run import QUOTA, CycleRun, Placing, blocked, tenants_of
from ces_scheduler.deadline_shares import Judgement
from ces_scheduler.deadlines import LOOK_S
from ces_scheduler.followed_jobs import FollowedJobs
from ces_scheduler.job_speeds import SpeedModels, left_of, rates_around
from ces_scheduler.offer import Cells, Offer
from ces_scheduler.owner_forecast import OwnerForecast
from ces_scheduler.proposals import Clock, Rejections, backoff_s
from ces_scheduler.sizing import Candidate, Resize, Sizing, Waiting, cost_s, resizable, usual_cost_s
from ces_scheduler.solver_calls import SolverCalls
from ces_scheduler.stakes import at_stake, for_deadline
from ces_scheduler.start_cpu import waits_for_more

log = structlog.get_logger()
BACK_S = 300.0  # in which a job does not take back what it gave to another
ANSWER_S = 5.0  # after this long without an answer a proposal counts as lost
ENDS_S = 5.0  # after a job's first task has ended in which its others are waited for: what they hold comes free, too
STARTS_S = 1.0  # after which it is looked whether a job that starts runs by now, of which no event is heard
BUDGET_MS = 250.0  # of solver time in one look
ROOM_MS = 500.0  # instead of that where jobs wait
STAKE_MS = 1000.0  # beside that, for each of the first TAKERS jobs whose deadlines are at stake
TAKERS = 3
TRIED = 4  # waiting jobs for which room is looked for, the first in the queue
TOGETHER = 8  # of them, with those behind, for which a job shrinks at one time
PROPOSED = Counter("ces_resizes_proposed_total", "Resizes of malleable jobs proposed")


@dataclass(frozen=True)
class _Given:
    """A job has given workers to another one, and does not grow back to the ``size`` that it had for a while."""

    size: float
    until: float


@dataclass(frozen=True)
class _Awaited:
    """A proposal that was not answered yet, for a job that has ``size`` workers. ``given``: if it gives any away."""

    resize: str
    job: str
    size: int | None
    until: float
    given: _Given | None


@dataclass(frozen=True)
class _Owed:
    """What a job whose deadline is at stake is to have of the nodes and links of a topology."""

    job: str
    cells: Cells
    topology: Topology


NOTHING = _Given(math.inf, 0.0)
ON_ITS_WAY = frozenset({JobState.PLANNED, JobState.PREPARING, JobState.STARTING})


def _ends(record: JobRecord) -> bool:
    """Whether some of its tasks have ended, and others have not."""
    return record.state is JobState.RUNNING and any(each.over for each in record.allocations)


def _shrinks(record: JobRecord) -> bool:
    """Whether it is about to give workers back."""
    return record.resizing is not None and record.size is not None and record.resizing.size < record.size


class Resizes:
    """Proposes one resize at a time, and none while a job shrinks: jobs may grow side by side. ``now``: the time of
    day; ``least_s``: between two of one job."""

    def __init__(self, bus: Bus, source: str, clock: Clock, now: Callable[[], datetime], least_s: float) -> None:
        self._bus, self._source, self._clock, self._now, self._least_s = bus, source, clock, now, least_s
        self._awaited: _Awaited | None = None
        self._owed: _Owed | None = None
        self._rejected: dict[str, Rejections] = {}  # by job
        self._looked: tuple[Offer, CycleRun | None] | None = None  # at what, to no avail
        self._due = -math.inf
        self._starts_s = math.inf  # after which to look whether jobs have started
        self._given: dict[str, _Given] = {}  # by job
        self._models = SpeedModels()
        self._malleable = FollowedJobs(lambda job: job.size is not None)
        self._ending = FollowedJobs(_ends)
        self._ends: dict[str, float] = {}  # job -> when its first task was seen to have ended

    @property
    def busy(self) -> bool:
        """Whether a proposal awaits its answer."""
        return self._awaited is not None

    def kept_free(self, offer: Offer) -> Offer:
        """Without what is free and owed to a job that must grow to be in time: nobody starts on it."""
        if self._owed is not None and self._owed.topology is not offer.cluster.topology:
            self._owed = None  # the next look decides on the nodes and links that there are now
        record = None if self._owed is None else offer.records.get(self._owed.job)
        if self._owed is None or record is None or record.state is not JobState.RUNNING:
            return offer
        held = offer.held[record.id]
        more = {cell: amount - held.get(cell, 0.0) for cell, amount in self._owed.cells.items()}
        free = offer.free_part(more)
        return offer.less({owed_to(record.id): free}) if free else offer

    async def look(
        self, view: StateView, offer: Offer, run: CycleRun | None, placing: Placing, judgement: Judgement
    ) -> float:
        """Propose a resize where one is worth it; returns after how many seconds to look again unasked. To be called
        while no other proposal awaits its answer. Raises BusError."""
        now = self._clock()
        if self._awaited is not None:
            record = view.jobs.get(self._awaited.job)
            as_it_was = record is not None and record.state is JobState.RUNNING and record.size == self._awaited.size
            if as_it_was and now < self._awaited.until:
                return self._awaited.until - now
            if self._awaited.given is not None and not as_it_was:
                self._given[self._awaited.job] = self._awaited.given
            self._awaited = None
        if self._looked is not None and self._looked[0] is offer and self._looked[1] is run and now < self._due:
            return min(self._starts_s, self._due - now)
        held = [offer.records[name] for name in sorted(self._malleable.look(view) & offer.records.keys())]
        self._given = {name: it for name, it in self._given.items() if now < it.until}
        ready = [record for record in held if resizable(record)]
        if any(_shrinks(record) for record in held):
            return math.inf  # what it gives back is not seen yet; its end is told
        self._rejected = {each.id: self._rejected.get(each.id, Rejections()) for each in ready}
        self._starts_s = STARTS_S if any(record.state in ON_ITS_WAY for record in held) else math.inf
        if not ready:
            self._owed = None
            return self._starts_s
        self._ends = {name: self._ends.get(name, now) for name in self._ending.look(view)}
        ends_s = max((since + ENDS_S - now for since in self._ends.values()), default=0.0)
        found = await asyncio.to_thread(self._decide, ready, held, offer, run, placing, now, judgement, ends_s <= 0)
        if found is not None:
            await self._propose(found, offer, view.version)
            return ANSWER_S
        rests = (
            [self._least_s - self._ran_s(each) for each in ready] + ([LOOK_S] if judgement.shares else []) + [ends_s]
        )
        self._looked, self._due = (offer, run), now + min([each for each in rests if each > 0], default=self._least_s)
        return min(self._starts_s, self._due - now)

    def rates(self, view: StateView, job: str) -> dict[int, float]:
        """How fast a malleable job is taken to be, in units/s: see rates_around."""
        record = view.jobs.get(job)
        others = [view.jobs[name] for name in self._malleable.look(view)]
        return {} if record is None or record.size is None else rates_around(record, others)

    def rejected(self, answer: ResizeRejected) -> None:
        if self._awaited is None or self._awaited.resize != answer.resize:
            return
        log.info("a resize was rejected", job=answer.job, reason=answer.reason)
        self._awaited = None
        if not answer.stale:
            count = self._rejected.get(answer.job, Rejections()).count + 1
            self._rejected[answer.job] = Rejections(count, self._clock() + backoff_s(1 + count))

    def _ran_s(self, record: JobRecord) -> float:
        since = self._now() if record.since is None else record.since
        return max(0.0, (self._now() - since).total_seconds())

    def _candidates(self, able: list[JobRecord], held: list[JobRecord], judgement: Judgement) -> list[Candidate]:
        usual_s, speeds, now_s = usual_cost_s(held), self._models.of(able, held), self._now().timestamp()
        return [
            Candidate(
                each,
                self._ran_s(each),
                usual_s if (measured_s := cost_s(each)) is None else measured_s,
                speeds[each.id],
                left_of(each, speeds[each.id], now_s),
                min(self._given.get(each.id, NOTHING).size, judgement.most(each.id) + 1),
                judgement.shares.get(each.id),
            )
            for each in able
        ]

    def _decide(
        self,
        ready: list[JobRecord],
        held: list[JobRecord],
        offer: Offer,
        run: CycleRun | None,
        placing: Placing,
        now: float,
        judgement: Judgement,
        calm: bool,
    ) -> Resize | None:
        """``held``: all malleable jobs that hold something; ``ready``: those of them that run; ``calm``: whether no
        more room is about to come free, into which a job would have to grow again."""
        able = [each for each in ready if now >= self._rejected[each.id].until]
        seeds, tenants = {each.id: each.attempt for each in able}, tenants_of(offer)
        if run is not None:
            seeds |= {name: job.attempt for name, job in run.given.records.items()}
            tenants = tenants | {name: job.tenant for name, job in run.given.records.items()}

        owners = OwnerForecast.of(offer, self._now())
        room = CardRoom(offer, {**offer.records, **({} if run is None else run.given.records)})

        def within(budget_ms: float) -> Sizing:
            calls = SolverCalls(
                placing.solver, seeds, placing.seconds, placing.time_limit_s, placing.fallback, owners, room
            )
            return Sizing(calls, placing.parameters, tenants, placing.paths, budget_ms)

        candidates, sizing = self._candidates(able, held, judgement), within(BUDGET_MS)
        for taker in at_stake(candidates, self._now().timestamp())[:TAKERS]:
            step = for_deadline(taker, candidates, offer, within(STAKE_MS), self._least_s)
            if step is not None:
                self._owed = _Owed(taker.record.id, step.owed, offer.cluster.topology)
                return step.resize
        self._owed = None
        rested = [each for each in candidates if each.ran_s >= self._least_s]
        if run is not None and blocked(run.given, run.decisions):
            return self._make_room(candidates, rested, offer, run, within(ROOM_MS), judgement)
        if not calm:
            return None
        grown = sizing.growth(rested, offer)
        if grown is not None:
            return grown
        return sizing.rebalance(rested, offer)

    def _make_room(
        self,
        able: list[Candidate],
        rested: list[Candidate],
        offer: Offer,
        run: CycleRun,
        sizing: Sizing,
        judgement: Judgement,
    ) -> Resize | None:
        """For the first in the queue that gets a place by it, and those behind that get one, too; before all others one
        that must start now to be in time, for which jobs shrink at once."""
        short = [each.job for each in run.statuses if each.reason is not None and each.reason.code != QUOTA]
        short = [name for name in short if not waits_for_more(run.given.records[name])]
        urgent = judgement.pressing.intersection(short)
        short.sort(key=lambda name: name not in urgent)
        lasting, urgently = [each for each in rested if each.lasts], [each for each in able if not each.ends_first]
        waiting = [Waiting.of(run.given.records[name], judgement.shares.get(name)) for name in short]
        for at, name in enumerate(short[:TRIED]):
            found = sizing.room_for(waiting[at : at + TOGETHER], urgently if name in urgent else lasting, offer)
            if found is not None:
                return found
        return None

    async def _propose(self, found: Resize, offer: Offer, version: int) -> None:
        job, decision, name = found.record, found.decision, str(ULID())
        before = offer.records[job.id]
        assert job.size is not None
        assert before.size is not None
        proposal = ResizeProposed(
            resize=name,
            job=job.id,
            attempt=job.attempt,
            version=version,
            solver=decision.solver,
            size=job.size,
            assignments=decision.assignments,
            flows=decision.flows,
            metrics=decision.metrics,
            considered=decision.considered(),
            cards=cards_for(before, job.tasks, decision.assignments, offer),
        )
        event = new_event(self._source, "resize", "proposed", job.id, proposal, datetime.now(UTC), event_id=name)
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
        given = _Given(before.size, self._clock() + BACK_S) if found.gives else None
        self._awaited = _Awaited(name, job.id, before.size, self._clock() + ANSWER_S, given)
        PROPOSED.inc()
        log.info("resize proposed", job=job.id, size=job.size, version=version)
