"""Which malleable jobs go to which size. Pure but for the solver.

Waiting jobs come first: a malleable job shrinks where one of them gets a place by it. Where nobody waits, jobs grow
into what is free, who gains most by it first, and a job gives workers to another one that gains more by them. Gains and
losses are logarithms of ratios of speeds: what one job gives to another because of them is never worth giving back.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import structlog

from ces_common.messages.records import JobRecord
from ces_common.states import AllocationState, JobState
from ces_core.malleable.speed import SpeedModel
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.ledger import TOLERANCE
from ces_core.queue.parameters import AMOUNTS, Parameters
from ces_core.queue.shares import amounts_of, capacity_of
from ces_scheduler.cycle_input import left_s
from ces_scheduler.deadline_shares import START_S, JobShare
from ces_scheduler.decision import Decision, decision_of
from ces_scheduler.job_problem import problem_of
from ces_scheduler.job_speeds import speed_of
from ces_scheduler.offer import Cells, Offer, cells_of_plan
from ces_scheduler.solver_calls import SolverCalls

log = structlog.get_logger()
WORTH: Final = 2.0  # times its cost that a resize must save
LOOKED_AT: Final = 4  # of the jobs that gain most, and of those that lose least, in one look
COST_S: Final = 30.0  # what a resize takes of a job, at most, until that of any was measured
CLEARLY: Final = 1.25  # times what another loses that a job must gain by its workers
SHARE: Final = 0.5  # of the budget, after which no further job is taken in: the rest is for the one that shrinks
USEFUL: Final = 0.1  # of the speed-up that is in proportion to the workers, as logarithms: less is measurement error


@dataclass(frozen=True)
class Candidate:
    """A running malleable job that may be resized now. ``ran_s``: since it runs at its present size; where it does not
    say how much it has to do, it is expected to run for as long again. ``cost_s``: what a resize takes of it.
    ``left``: units of work; None where it does not say. ``below``: what it grows to is smaller than this, since it has
    given workers to another job a moment ago. ``share``: what deadlines ask for, where any job has one."""

    record: JobRecord
    ran_s: float
    cost_s: float
    speed: SpeedModel
    left: float | None
    below: float = math.inf
    share: JobShare | None = None

    @property
    def size(self) -> int:
        assert self.record.size is not None
        return self.record.size

    @property
    def sizes(self) -> Sequence[int]:
        assert self.record.spec is not None
        assert self.record.spec.elastic is not None
        return self.record.spec.elastic.allowed

    @property
    def least(self) -> int:
        """It shrinks no further for others."""
        return self.sizes[0] if self.share is None else max(self.sizes[0], min(self.share.least, self.size))

    @property
    def claimed(self) -> list[int]:
        """The sizes to which it may grow for its deadline, rising."""
        most = self.sizes[-1] if self.share is None else self.share.size
        return [size for size in self.sizes if self.size < size <= most]

    @property
    def left_s(self) -> float | None:
        """For how long it goes on at its size; None where it does not say how much it has to do, or how fast it is."""
        return None if self.left is None or not self.speed.known else self.left / self.speed.rate(self.size)

    @property
    def ends_first(self) -> bool:
        """Whether it would have ended by the time a resize is through."""
        return self.left_s is not None and self.left_s <= self.cost_s

    @property
    def lasts(self) -> bool:
        """Whether it goes on for long enough that a job that does not wait for its end gains more than a resize
        costs."""
        return self.left_s is None or self.left_s >= WORTH * self.cost_s

    def pays(self, size: int) -> bool:
        """Whether going to a larger size saves clearly more time than it takes."""
        runs_s = self.ran_s if self.left_s is None else self.left_s
        return runs_s >= pays_after_s(self.speed, self.size, size, self.cost_s)

    def needed_s(self, larger: Iterable[int]) -> float:
        """For how long it must keep its places for every one of these sizes to pay that makes it faster at all."""
        times = [pays_after_s(self.speed, self.size, size, self.cost_s) for size in larger]
        return max((seconds for seconds in times if seconds < math.inf), default=0.0)

    def smaller(self) -> list[int]:
        """The sizes to which it may shrink for others, rising."""
        return [size for size in self.sizes if self.least <= size < self.size]

    def larger(self) -> list[int]:
        """The sizes to which it may grow, rising."""
        return [size for size in useful([self.size, *self.claimed], self.speed) if self.size < size < self.below]

    def gain(self, larger: int, size: int | None = None) -> float:
        """What it gains by going to a size, from ``size`` or its present one."""
        return math.log(self.speed.rate(larger) / self.speed.rate(size or self.size))

    def next_gain(self) -> float:
        """What it gains for each worker by the next step that it may take; none if it can take none."""
        larger = self.larger()
        return self.gain(larger[0]) / (larger[0] - self.size) if larger else -math.inf

    def next_loss(self) -> float:
        """What it loses for each worker by the next smaller size; infinite if there is none."""
        smaller = self.smaller()
        return -self.gain(smaller[-1]) / (self.size - smaller[-1]) if smaller else math.inf


@dataclass(frozen=True)
class Waiting:
    """A job that waits for a place. ``sizes``: larger than that of its record, rising, up to what its deadline asks
    for."""

    record: JobRecord
    sizes: Sequence[int] = ()

    @staticmethod
    def of(record: JobRecord, share: JobShare | None) -> Waiting:
        elastic = None if record.spec is None else record.spec.elastic
        if elastic is None or record.size is None or share is None:
            return Waiting(record)
        return Waiting(record, [size for size in elastic.allowed if record.size < size <= share.least])


@dataclass(frozen=True)
class Resize:
    """A job's record at its new size, and its place there. ``gives``: it shrinks for one that gains more."""

    record: JobRecord
    decision: Decision
    gives: bool = False


def pays_after_s(speed: SpeedModel, size: int, larger: int, cost_s: float) -> float:
    """For how long a job must run at a larger size to save clearly more time than a resize takes; infinite where it is
    no faster."""
    now, then = speed.rate(size), speed.rate(larger)
    return WORTH * cost_s / (1 - now / then) if then > now else math.inf


def useful(sizes: Iterable[int], speed: SpeedModel) -> list[int]:
    """Of rising sizes the first, and those whose workers make the job clearly faster than the ones before."""
    kept: list[int] = []
    for size in sizes:
        if not kept or speed.rate(size) >= speed.rate(kept[-1]) * (size / kept[-1]) ** USEFUL:
            kept.append(size)
    return kept


def cost_s(record: JobRecord) -> float | None:
    """What the job's last resize took of it: from the end of its work to running at the new size, and from there to the
    first step, where it tells of steps. None where that was not measured."""
    if record.resize_s is None:
        return None
    load_s = None if record.speeds is None else record.speeds.load_s
    return max(0.0, record.resize_s) + (load_s or 0.0)


def usual_cost_s(records: Iterable[JobRecord]) -> float:
    """What a resize takes of a job for which that was not measured: the median of those for which it was; where there
    are none, of what their files leave them to write a checkpoint, with a start."""
    known = list(records)
    measured = [cost for record in known if (cost := cost_s(record)) is not None]
    elastic = [each.spec.elastic for each in known if each.spec is not None and each.spec.elastic is not None]
    return median(measured or [min(each.grace + START_S, COST_S) for each in elastic] or [COST_S])


def in_hand_s(records: Iterable[JobRecord]) -> float:
    """What is kept in hand for a resize before each deadline: no more than is usual, whatever jobs of others make of
    it."""
    return min(usual_cost_s(records), COST_S)


def resizable(record: JobRecord) -> bool:
    """Whether it is malleable, and all of it runs."""
    return (
        record.size is not None
        and record.state is JobState.RUNNING
        and all(each.state is AllocationState.RUNNING for each in record.allocations)
    )


def at_size(record: JobRecord, size: int) -> JobRecord:
    """The job as it is at another size."""
    assert record.spec is not None
    sized = record.spec.at_size(size)
    return record.model_copy(update={"tasks": sized.expand_tasks(), "flows": sized.expand_flows(), "size": size})


@dataclass
class Sizing:
    """Looks for places at other sizes. ``paths``: see problem_of; ``tenants``: of all jobs that hold something, by the
    name under which the core knows them; ``budget_ms``: of solver time in all, after which nothing more is found;
    ``others``: jobs by which the speed of one that starts may be judged."""

    calls: SolverCalls
    parameters: Parameters
    tenants: Mapping[str, str]
    paths: int | None = None
    budget_ms: float = math.inf
    others: Collection[JobRecord] = ()

    @property
    def spent(self) -> float:
        """Of the budget, as a share."""
        return sum(self.calls.spent_ms.values()) / self.budget_ms

    def place(self, record: JobRecord, offer: Offer, needed_s: float = 0.0) -> Decision | None:
        """A place for the job at the size that its record has, on what is offered and within its tenant's quota; None
        if none is found. The first task stays where the checkpoints lie. ``needed_s``: for how long no owner is
        expected on a node that the job does not hold yet."""
        if self.spent > 1:
            return None
        try:
            return self._placed(record, offer, needed_s)
        except Exception:  # it must not keep the others from their places
            log.exception("no place could be looked for", job=record.id, size=record.size)
            return None

    def _placed(self, record: JobRecord, offer: Offer, needed_s: float) -> Decision | None:
        problem, submitted_s = problem_of(record, offer, self.paths), record.submitted_at.timestamp()
        job = WaitingJob(record.id, problem, submitted_s, record.priority, record.tenant, left_s(record))
        barred = self.calls.owners.barred(needed_s, {each.node for each in record.allocations if not each.over})
        plan = self.calls(job, offer.cluster, barred).plan
        decision = None if plan is None else decision_of(record, job, plan, offer, self.calls)
        return None if decision is None or self._beyond_quota(record.tenant, decision.cells, offer) else decision

    def enlarged(self, record: JobRecord, offer: Offer, most: float) -> Resize | None:
        """A malleable job that starts from the queue, at the largest useful size above its present one, and up to
        ``most``, that fits what is offered. One that was suspended goes on as it was."""
        if record.state is not JobState.QUEUED or record.size is None or record.spec is None:
            return None
        allowed = () if record.spec.elastic is None else record.spec.elastic.allowed
        speed, size, cost_s = speed_of(record, self.others), record.size, usual_cost_s([*self.others, record])
        sizes = [larger for larger in useful(allowed, speed) if size < larger <= most]
        needed_s = pays_after_s(speed, size, sizes[0], cost_s) if sizes else 0.0
        return self.largest(record, sizes, offer, needed_s)

    def largest(self, record: JobRecord, sizes: Sequence[int], offer: Offer, needed_s: float = 0.0) -> Resize | None:
        """The job at the largest of the rising sizes for which a place is found, by bisection: what fits at one size
        fits at a smaller one, but for rare cases. ``needed_s``: see place."""
        found, low, high = None, 0, len(sizes)
        at = high - 1
        while low < high:
            sized = at_size(record, sizes[at])
            decision = self.place(sized, offer, needed_s)
            if decision is not None:
                found, low = Resize(sized, decision), at + 1
            else:
                high = at
            at = (low + high) // 2
        return found

    def growth(self, candidates: Iterable[Candidate], offer: Offer) -> Resize | None:
        """Of the most urgent jobs that can grow into what is free the one that gains most by it, at the largest size
        that fits. One at a time: the next look sees what it left."""
        for each in sorted(candidates, key=lambda each: (-each.record.priority, -each.next_gain(), each.record.id)):
            sizes = [size for size in each.larger() if each.pays(size)]
            left = offer.without(each.record.id)
            if sizes and (found := self.largest(each.record, sizes, left, each.needed_s(sizes))):
                return found
        return None

    def room_for(self, waiting: Sequence[Waiting], candidates: Iterable[Candidate], offer: Offer) -> Resize | None:
        """A malleable job at the smaller size that makes room for the first waiting job, which has no place otherwise;
        None if no job can. Of the least urgent jobs the one with most workers to spare shrinks, by as few as it takes,
        once for all waiting jobs that then get a place. No job shrinks for a less urgent one."""
        if self.place(waiting[0].record, offer) is not None:
            return None
        priority = waiting[0].record.priority
        spare = [each for each in candidates if each.size > each.least and each.record.priority <= priority]
        for each in sorted(spare, key=lambda each: (each.record.priority, each.least - each.size, each.record.id)):
            left = offer.without(each.record.id)
            smallest = self.place(at_size(each.record, each.least), left)
            if smallest is None:
                continue
            for_it = [one for one in waiting if one.record.priority >= each.record.priority]
            taken = self._taken(for_it, left.less({each.record.id: smallest.cells}))
            if taken and (found := self.largest(each.record, each.smaller(), left.less(taken))):
                return found
        return None

    def _taken(self, waiting: Sequence[Waiting], offer: Offer) -> dict[str, Cells]:
        """What those take that get a place in what is offered, one after the other; nothing unless the first does."""
        taken: dict[str, Cells] = {}
        for each in waiting:
            if taken and self.spent > SHARE:
                break
            found = self.largest(each.record, each.sizes, offer) if each.sizes else None
            decision = self.place(each.record, offer) if found is None else found.decision
            if decision is not None:
                taken[each.record.id] = decision.cells
                offer = offer.less({each.record.id: decision.cells})
            elif not taken:
                break
        return taken

    def rebalance(self, candidates: Sequence[Candidate], offer: Offer) -> Resize | None:
        """A job that gives workers to another one, which gains clearly more by them; the other one grows once they are
        gone. Only those are looked at that gain most and lose least by the next step."""
        takers = sorted(candidates, key=lambda each: (-each.next_gain(), each.record.id))
        givers = sorted(candidates, key=lambda each: (each.next_loss(), each.record.id))
        for taker in takers[:LOOKED_AT]:
            for giver in givers[:LOOKED_AT]:
                if giver.record.id == taker.record.id or giver.record.priority > taker.record.priority:
                    continue
                sizes = _balanced(taker, giver)
                if sizes is None or not taker.pays(sizes[0]):
                    continue
                left = offer.without(taker.record.id).without(giver.record.id)
                given = at_size(giver.record, sizes[1])
                # for as long as its growth will be asked to pay, once the other has given
                needed_s = taker.needed_s(size for size in taker.larger() if taker.pays(size)) + giver.cost_s
                decision = self._beside(given, at_size(taker.record, sizes[0]), left, needed_s)
                if decision is not None:
                    return Resize(given, decision, gives=True)
        return None

    def _beside(self, record: JobRecord, other: JobRecord, offer: Offer, needed_s: float) -> Decision | None:
        """A place for a job that leaves one for the other, whose first task cannot leave its node. ``needed_s``: see
        place, of the other."""
        stays = {} if other.checkpoint_node is None else {other.tasks[0].name: other.checkpoint_node}
        kept = cells_of_plan(other.tasks[: len(stays)], stays, [], offer.cluster.topology)
        decision = self.place(record, offer.less({other.id: kept}))
        if decision is None or self.place(other, offer.less({record.id: decision.cells}), needed_s) is None:
            return None
        return decision

    def _beyond_quota(self, tenant: str, cells: Cells, offer: Offer) -> bool:
        quota = self.parameters.tenant(tenant).quota
        if not quota:
            return False
        amounts = amounts_of(cells)
        for name, held in offer.held.items():
            if self.tenants.get(name) == tenant:
                amounts = amounts + amounts_of(held)
        capacity = capacity_of(offer.cluster)
        limited = [(row, quota[resource]) for row, resource in enumerate(AMOUNTS) if resource in quota]
        return any(amounts[row] > share * capacity[row] * (1 + TOLERANCE) for row, share in limited)


def _balanced(taker: Candidate, giver: Candidate) -> tuple[int, int] | None:
    """The sizes of both once the giver has given what the taker clearly gains more by; None if that is nothing."""
    best, have, keep, smaller = None, taker.size, giver.size, giver.smaller()
    for more in taker.larger():
        at = bisect_right(smaller, giver.size - (more - taker.size)) - 1
        if at < 0 or taker.gain(more, have) < CLEARLY * -giver.gain(smaller[at], keep):
            break
        best = have, keep = more, smaller[at]
    return best
