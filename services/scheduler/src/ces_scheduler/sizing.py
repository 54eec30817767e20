"""Which malleable jobs go to which size. Pure but for the solver.

Waiting jobs come first: a malleable job shrinks where one of them gets a place by it. Where nobody waits, jobs grow
into what is free, and a job gives workers to another one that gains more by them. Speeds are not measured: a job of n
workers is taken to be n^0.8 times as fast as with one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ces_common.messages.records import JobRecord
from ces_common.states import AllocationState, JobState
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.ledger import TOLERANCE
from ces_core.queue.parameters import AMOUNTS, Parameters
from ces_core.queue.shares import amounts_of, capacity_of
from ces_scheduler.decision import Decision, decision_of
from ces_scheduler.job_problem import problem_of
from ces_scheduler.offer import Cells, Offer, cells_of_plan
from ces_scheduler.solver_calls import SolverCalls

EXPONENT: Final = 0.8
WORTH: Final = 2.0  # times its cost that a resize must save
LOOKED_AT: Final = 4  # of the smallest jobs, and of the largest, in one look
CLEARLY: Final = 1.25  # times what another loses that a job must gain by its workers


@dataclass(frozen=True)
class Candidate:
    """A running malleable job that may be resized now. ``ran_s``: since it runs at its present size; it is expected to
    run for as long again. ``cost_s``: what a resize takes of it."""

    record: JobRecord
    ran_s: float
    cost_s: float

    @property
    def size(self) -> int:
        assert self.record.size is not None
        return self.record.size

    @property
    def sizes(self) -> Sequence[int]:
        assert self.record.spec is not None
        assert self.record.spec.elastic is not None
        return self.record.spec.elastic.allowed

    def pays(self, size: int) -> bool:
        """Whether going to a larger size saves clearly more time than it takes."""
        return self.ran_s * (1 - speed(self.size) / speed(size)) >= WORTH * self.cost_s


@dataclass(frozen=True)
class Resize:
    """A job's record at its new size, and its place there."""

    record: JobRecord
    decision: Decision


def speed(size: int) -> float:
    """Speed with this many workers, in that of one."""
    return float(size**EXPONENT)


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
    name under which the core knows them; ``budget_ms``: of solver time in all, after which nothing more is found."""

    calls: SolverCalls
    parameters: Parameters
    tenants: Mapping[str, str]
    paths: int | None = None
    budget_ms: float = math.inf

    def place(self, record: JobRecord, offer: Offer) -> Decision | None:
        """A place for the job at the size that its record has, on what is offered and within its tenant's quota; None
        if none is found. The first task stays where the checkpoints lie."""
        if sum(self.calls.spent_ms.values()) > self.budget_ms:
            return None
        problem = problem_of(record, offer, self.paths)
        job = WaitingJob(record.id, problem, record.submitted_at.timestamp(), record.priority, record.tenant)
        plan = self.calls(job, offer.cluster).plan
        decision = None if plan is None else decision_of(record, job, plan, offer, self.calls)
        return None if decision is None or self._beyond_quota(record.tenant, decision.cells, offer) else decision

    def enlarged(self, record: JobRecord, offer: Offer) -> Resize | None:
        """A malleable job that starts from the queue, at the largest size above its present one that fits what is
        offered. One that was suspended goes on as it was."""
        if record.state is not JobState.QUEUED or record.size is None or record.spec is None:
            return None
        sizes = () if record.spec.elastic is None else record.spec.elastic.allowed
        return self.largest(record, [size for size in sizes if size > record.size], offer)

    def largest(self, record: JobRecord, sizes: Sequence[int], offer: Offer) -> Resize | None:
        """The job at the largest of the rising sizes for which a place is found, by bisection: what fits at one size
        fits at a smaller one, but for rare cases."""
        found, low, high = None, 0, len(sizes)
        at = high - 1
        while low < high:
            sized = at_size(record, sizes[at])
            decision = self.place(sized, offer)
            if decision is not None:
                found, low = Resize(sized, decision), at + 1
            else:
                high = at
            at = (low + high) // 2
        return found

    def growth(self, candidates: Iterable[Candidate], offer: Offer) -> Resize | None:
        """The most urgent of the smallest jobs that can grow into what is free, at the largest size that fits. One at a
        time: the next look sees what it left."""
        for each in sorted(candidates, key=lambda each: (-each.record.priority, each.size, each.record.id)):
            sizes = [size for size in each.sizes if size > each.size and each.pays(size)]
            if sizes and (found := self.largest(each.record, sizes, offer.without(each.record.id))):
                return found
        return None

    def room_for(
        self, waiting: WaitingJob, record: JobRecord, candidates: Iterable[Candidate], offer: Offer
    ) -> Resize | None:
        """The malleable job that shrinks so that a waiting one, which has no place otherwise, gets one: of the least
        urgent ones that with most workers to spare, by as few as it takes. None shrinks for a less urgent job."""
        if self.calls(waiting, offer.cluster).plan is not None:
            return None
        spare = [each for each in candidates if each.size > each.sizes[0] and each.record.priority <= record.priority]
        for each in sorted(spare, key=lambda each: (each.record.priority, each.sizes[0] - each.size, each.record.id)):
            left = offer.without(each.record.id)
            smallest = self.place(at_size(each.record, each.sizes[0]), left)
            beside = None if smallest is None else left.less({each.record.id: smallest.cells})
            plan = None if beside is None else self.calls(waiting, beside.cluster).plan
            if beside is None or plan is None:
                continue
            taken = decision_of(record, waiting, plan, beside, self.calls)
            smaller = [size for size in each.sizes if size < each.size]
            found = self.largest(each.record, smaller, left.less({waiting.name: taken.cells}))
            if found is not None:
                return found
        return None

    def rebalance(self, candidates: Sequence[Candidate], offer: Offer) -> Resize | None:
        """A job that gives workers to another one, which gains clearly more by them; the other one grows once they are
        gone. Only the smallest and the largest jobs are looked at."""
        by_size = sorted(candidates, key=lambda each: (each.size, each.record.id))
        for taker in by_size[:LOOKED_AT]:
            for giver in reversed(by_size[-LOOKED_AT:]):
                if giver.record.id == taker.record.id or giver.record.priority > taker.record.priority:
                    continue
                sizes = _balanced(taker, giver)
                if sizes is None or not taker.pays(sizes[0]):
                    continue
                left = offer.without(taker.record.id).without(giver.record.id)
                taken, given = at_size(taker.record, sizes[0]), at_size(giver.record, sizes[1])
                decision = self._beside(given, taken, left)
                if decision is not None:
                    return Resize(given, decision)
        return None

    def _beside(self, record: JobRecord, other: JobRecord, offer: Offer) -> Decision | None:
        """A place for a job that leaves one for the other, whose first task cannot leave its node."""
        stays = {} if other.checkpoint_node is None else {other.tasks[0].name: other.checkpoint_node}
        kept = cells_of_plan(other.tasks[: len(stays)], stays, [], offer.cluster.topology)
        decision = self.place(record, offer.less({other.id: kept}))
        if decision is None or self.place(other, offer.less({record.id: decision.cells})) is None:
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
    up = [size for size in taker.sizes if size > taker.size]
    down = [size for size in reversed(giver.sizes) if size < giver.size]
    best = None
    have, keep = taker.size, giver.size
    for more, less in zip(up, down, strict=False):
        gain, loss = speed(more) / speed(have) - 1, 1 - speed(less) / speed(keep)
        if gain < CLEARLY * loss or less < more:
            break
        best = have, keep = more, less
    return best
