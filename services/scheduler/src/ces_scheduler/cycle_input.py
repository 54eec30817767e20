"""What a cycle over the queue decides on, made from the committed state, and what is kept of one cycle for the next.
Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ces_common.jobfile import Preemption
from ces_common.messages.events import Reason
from ces_common.messages.plans import FlowPlan
from ces_common.messages.records import JobRecord
from ces_common.queuefile import QueueFile
from ces_common.states import JOB_OVER, JobState
from ces_core.model.errors import ProblemError
from ces_core.queue.jobs import RunningJob, WaitingJob, owed_to
from ces_core.queue.ledger import Ledger
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.queue.reservations import Reservation
from ces_core.queue.state import Decisions, Memory, State, carried
from ces_scheduler.application_goals import lacking_access
from ces_scheduler.card_cells import by_card, matter
from ces_scheduler.eligibility import lacking_data, unmet_constraints
from ces_scheduler.job_problem import asked_by, first_places, problem_of
from ces_scheduler.offer import Offer, cards_of_plan, cells_of_plan
from ces_scheduler.start_cpu import begins_with

NO_NODES = Reason(code="no-nodes", text="no node has joined the cluster yet", forever=True)
STARTS = 16
"""Jobs that start in one cycle at most: then they are proposed, and the state is read again."""
LEAVING = JOB_OVER | {JobState.RESCHEDULING, JobState.QUEUED}
FROZEN = frozenset({JobState.PAUSED, JobState.SUSPENDED})
OVERRUN_S = 1e-3
"""What is due within this is not waited for: a job that runs longer than it said may end any moment."""


def parameters_of(queue: QueueFile) -> Parameters:
    """The queue file's parameters as the core knows them."""
    weights = queue.weights
    return Parameters(
        window=queue.window,
        starts=STARTS,
        fit=weights.fit,
        priority=weights.priority,
        waiting=weights.waiting,
        share=weights.share,
        bound_s=queue.bound,
        overdue=queue.overdue,
        reservations=queue.reservations,
        crowded=queue.crowded,
        declined=queue.declined,
        patience_s=queue.patience,
        preemption=queue.preemption,
        tenants=tuple(
            Tenant(tenant.name, tenant.weight, tenant.guaranteed.said(), tenant.quota.said())
            for tenant in queue.tenants
        ),
    )


@dataclass(frozen=True)
class Proposed:
    """A plan for a job that the manager has not answered yet."""

    job: JobRecord
    assignments: dict[str, str]
    flows: list[FlowPlan]
    cards: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Entry:
    """A queued job as the core knows it, or why it cannot take part in a cycle. ``said``: the fields of its record on
    which this depends."""

    said: tuple[object, ...]
    job: WaitingJob | None = None
    reason: Reason | None = None

    @property
    def asks(self) -> tuple[object, ...]:
        """All but whether it must begin now."""
        return self.said[:-1]


@dataclass(frozen=True, eq=False)
class LastCycle:
    """What is kept of the last cycle. ``offer``: what it left; ``entries``: who waits and ``running``: who holds
    something after it; ``more``: see Decisions; ``by_card``: whether what it remembers tells of cards."""

    offer: Offer
    entries: Mapping[str, Entry]
    memory: Memory
    freed: int
    running: frozenset[str]
    more: bool
    by_card: bool = False

    @property
    def done(self) -> bool:
        """Whether nobody waited any more after it, and nothing is kept for anybody."""
        return not (self.entries or self.memory.reservations or self.more)


@dataclass(frozen=True)
class Question:
    """All that decides whether a cycle may decide otherwise than the last one, but for the passing of time."""

    waiting: list[JobRecord]
    offer: Offer
    proposed: list[Proposed]
    parameters: Parameters
    last: LastCycle | None
    preempting: Collection[str]
    pressing: Collection[str]

    def same_as(self, other: Question | None) -> bool:
        """Whether both are of the very same state. May say no where they are."""
        if other is None or self.waiting is not other.waiting or self.offer is not other.offer:
            return False
        one, two = ((x.proposed, x.parameters, x.last, x.preempting, x.pressing) for x in (self, other))
        return one == two


@dataclass(frozen=True, eq=False)
class CycleInput:
    """``offer``: what committed and proposed plans leave; ``records``: of the queued jobs; ``lost``: jobs whose
    reservation is no longer possible; ``news``: whether a cycle may decide otherwise than the last one, apart from what
    the passing of time changes."""

    offer: Offer
    records: Mapping[str, JobRecord]
    entries: Mapping[str, Entry]
    state: State
    lost: Sequence[str]
    news: bool

    @property
    def untried(self) -> int:
        """The number of jobs that the solver has not refused yet."""
        refusals, freed = self.state.memory.refusals, self.state.freed
        known = {name for name, refusal in refusals.items() if refusal.forever or refusal.freed == freed}
        return sum(job.name not in known for job in self.state.waiting)

    def after(self, offer: Offer, decisions: Decisions) -> LastCycle:
        """What to keep of a cycle with these decisions. ``offer``: what its starts have left."""
        started = {start.job for start in decisions.starts}
        entries = {name: entry for name, entry in self.entries.items() if name not in started}
        running = frozenset(job.name for job in self.state.running) | started
        cards = self.state.ledger.base.cards
        return LastCycle(offer, entries, decisions.memory, self.state.freed, running, decisions.more, cards is not None)


def is_queued(job: JobRecord) -> bool:
    """Whether the job waits for a place and holds none any more, or is suspended and waits for what it gave up."""
    return job.state is JobState.SUSPENDED or (job.state is JobState.QUEUED and not job.allocations)


def proposed_on(offer: Offer, proposed: Sequence[Proposed]) -> Offer:
    """What proposed plans leave of an offer."""
    if not proposed:
        return offer
    topology = offer.cluster.topology
    cells = {
        each.job.id: cells_of_plan(asked_by(each.job), each.assignments, each.flows, topology) for each in proposed
    }
    cards = {
        each.job.id: cards_of_plan(each.cards, each.assignments, each.job.tasks, offer.nodes)
        for each in proposed
        if each.cards
    }
    return replace(offer.less(cells), cards=offer.cards | cards)


def cycle_input(
    waiting: Iterable[JobRecord],
    offer: Offer,
    proposed: Sequence[Proposed],
    now: datetime,
    parameters: Parameters,
    last: LastCycle | None,
    paths: int | None = None,
    preempting: Collection[str] = (),
    pressing: Collection[str] = (),
) -> CycleInput:
    """What the next cycle decides on. ``offer``: what committed plans leave; ``paths``: see problem_of; ``preempting``:
    jobs for which a proposed preemption waits for its answer; ``pressing``: see WaitingJob. Room that is kept for
    another, on what running jobs were to give up and have not, is kept no longer: who makes room for it is decided
    again."""
    left = proposed_on(offer, proposed)
    same_ground = last is not None and last.offer.same_ground(left)
    records = {job.id: job for job in waiting}
    earlier = last.entries if last is not None and same_ground else {}
    entries = _entries(records.values(), left, parameters, paths, earlier, pressing)
    jobs = [entry.job for entry in entries.values() if entry.job is not None]
    names = {job.name for job in jobs}
    running = running_jobs(left, proposed, now.timestamp())
    carded = matter(left, [records[job.name] for job in jobs])
    base, held = by_card(left) if carded else (left.cluster.emptied(), left.held)
    memory, freed, lost = Memory(), 0, []
    if last is not None:
        memory, freed = last.memory, last.freed
        if not same_ground or last.by_card != carded:
            memory = carried(last.memory, jobs, base)
        promised = {each.job for each in last.memory.reservations}
        lost = sorted(promised & names - {each.job for each in memory.reservations})
        standing = _standing(memory.reservations, running, preempting)
        given_back = len(standing) < len(memory.reservations)
        memory = replace(memory, reservations=standing)
        freed += given_back or not left.nothing_freed_since(last.offer) or not promised <= names
    news = (
        last is None
        or last.more
        or freed != last.freed
        or last.running != {job.name for job in running}
        or last.entries.keys() != entries.keys()
        or any(entry is not last.entries[name] for name, entry in entries.items())
    )
    ledger = Ledger.of(base, held)
    changed = frozenset[str]()
    if last is not None:
        before = last.entries
        changed = frozenset(name for name in names if name in before and before[name].asks != entries[name].asks)
    state = State(now.timestamp(), ledger, jobs, running, freed, memory, changed)
    return CycleInput(left, records, entries, state, lost, news)


def _standing(
    reservations: Iterable[Reservation], running: Iterable[RunningJob], preempting: Collection[str]
) -> tuple[Reservation, ...]:
    """The reservations that rely on no preemption, or on one that is proposed or done."""
    able = {job.name for job in running if job.preemption is not None}
    return tuple(
        each
        for each in reservations
        if each.preempted is None or each.job in preempting or able.isdisjoint(each.preempted.names)
    )


def running_jobs(offer: Offer, proposed: Iterable[Proposed], now_s: float) -> list[RunningJob]:
    """The jobs that hold something. One that is about to leave may end any moment; when a paused or suspended one ends
    is unknown, and until when a job is owed what is free."""
    found = []
    for name, job in offer.records.items():
        expected_s = job.expected_s
        if job.state in LEAVING:
            expected_s = 0.0
        elif job.state in FROZEN:
            expected_s = None
        since_s = now_s if job.started_at is None else job.started_at.timestamp()
        found.append(RunningJob(name, since_s, job.tenant, expected_s, job.priority, _preemption(job)))
        if owed_to(name) in offer.held:
            found.append(RunningJob(owed_to(name), since_s, job.tenant, None, job.priority))
    found += [RunningJob(each.job.id, now_s, each.job.tenant, left_s(each.job)) for each in proposed]
    return found


def left_s(job: JobRecord) -> float | None:
    """How many seconds the job expects to run once it starts or goes on; None where it does not say."""
    return None if job.expected_s is None else max(0.0, job.expected_s - (job.ran_s or 0.0))


def _preemption(job: JobRecord) -> Preemption | None:
    """How the job may make room for a more urgent one; None where it may not: whoever paused a job wants it kept."""
    if job.state in LEAVING or job.state is JobState.PAUSED:
        return None
    return job.preemption if job.state is JobState.RUNNING else "stop"


def next_look_s(given: CycleInput, decisions: Decisions, parameters: Parameters) -> float | None:
    """Seconds until time alone may change a decision: a job becomes overdue or waits no longer for bandwidth, or a
    reservation begins. None: it will not."""
    now = given.state.now_s
    left = {job.name for job in given.state.waiting} - {start.job for start in decisions.starts}
    dues = [job.submitted_s + parameters.overdue_s for job in given.state.waiting if job.name in left]
    dues += [each.start_s for each in decisions.memory.reservations if each.start_s is not None]
    dues += [each.until_s for each in decisions.memory.unmoved.values() if math.isfinite(each.until_s)]
    dues += [refusal.until_s for refusal in decisions.memory.refusals.values() if math.isfinite(refusal.until_s)]
    coming = [due - now for due in dues if due > now + OVERRUN_S]
    return min(coming, default=None)


def _entries(
    jobs: Iterable[JobRecord],
    offer: Offer,
    parameters: Parameters,
    paths: int | None,
    earlier: Mapping[str, Entry],
    pressing: Collection[str],
) -> dict[str, Entry]:
    found = {}
    for job in jobs:
        over = sum(each.over for each in job.allocations)
        first, presses = first_places(job, offer), job.id in pressing
        said = (
            job.attempt,
            job.priority,
            job.tenant,
            job.expected_s,
            job.submitted_at,
            job.state,
            job.size,
            begins_with(job),
            over,
            first,
            presses,
        )
        known = earlier.get(job.id)
        found[job.id] = (
            known if known is not None and known.said == said else _entry(job, said, offer, parameters, paths, presses)
        )
    return found


def _entry(
    job: JobRecord,
    said: tuple[object, ...],
    offer: Offer,
    parameters: Parameters,
    paths: int | None,
    presses: bool,
) -> Entry:
    lacking = lacking_data(job.flows, offer.nodes)
    if lacking is None and job.state is not JobState.SUSPENDED:  # that one has its nodes
        lacking = lacking_access(job, offer.nodes) or unmet_constraints(job.tasks, offer.nodes)
    if lacking is not None:
        return Entry(said, reason=lacking)
    try:
        parameters.tenant(job.tenant)
        problem = problem_of(job, offer, paths)
        submitted_s = job.submitted_at.timestamp()
        said_of = submitted_s, job.priority, job.tenant, left_s(job), presses
        return Entry(said, WaitingJob(job.id, problem, *said_of))
    except ProblemError as error:  # no reason to keep the other jobs waiting
        return Entry(said, reason=Reason(code="impossible", text=f"the job makes no sense: {error}", forever=True))
