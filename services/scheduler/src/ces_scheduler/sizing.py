"""Which malleable jobs go to which size. Pure but for the solver.

Waiting jobs come first: a malleable job shrinks where one of them gets a place by it. Where nobody waits, jobs grow
into what is free, and a job gives workers to another one that gains more by them. Speeds are not measured: a job of n
workers is taken to be n^0.8 times as fast as with one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ces_common.messages.records import JobRecord
from ces_common.states import AllocationState, JobState
from ces_core.queue.jobs import WaitingJob
from ces_scheduler.decision import Decision, decision_of
from ces_scheduler.job_problem import problem_of
from ces_scheduler.offer import Offer
from ces_scheduler.solver_calls import SolverCalls

EXPONENT: Final = 0.8
WORTH: Final = 2.0  # times its cost that a resize must save
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


def place(record: JobRecord, offer: Offer, calls: SolverCalls, paths: int | None) -> Decision | None:
    """A place for the job at the size that its record has, on what is offered; None if none is found. What keeps its
    number keeps its node only for the first task: checkpoints lie there."""
    first = next((each for each in record.allocations if each.rank == 0 and not each.over), None)
    kept = {} if first is None else {first.task: first.node}
    problem = problem_of(record, offer, paths, kept)
    job = WaitingJob(record.id, problem, record.submitted_at.timestamp(), record.priority, record.tenant)
    plan = calls(job, offer.cluster).plan
    return None if plan is None else decision_of(record, job, plan, offer, calls)


def largest_placed(
    record: JobRecord, sizes: Sequence[int], offer: Offer, calls: SolverCalls, paths: int | None
) -> Resize | None:
    """The job at the largest of the rising sizes for which a place is found, by bisection: what fits at one size fits
    at a smaller one, but for rare cases."""
    found, low, high = None, 0, len(sizes)
    at = high - 1
    while low < high:
        sized = at_size(record, sizes[at])
        decision = place(sized, offer, calls, paths)
        if decision is not None:
            found, low = Resize(sized, decision), at + 1
        else:
            high = at
        at = (low + high) // 2
    return found


def enlarged(record: JobRecord, offer: Offer, calls: SolverCalls, paths: int | None) -> Resize | None:
    """A malleable job that starts, at the largest size above its present one that fits what is offered."""
    if record.size is None or record.spec is None or record.spec.elastic is None:
        return None
    return largest_placed(
        record, [size for size in record.spec.elastic.allowed if size > record.size], offer, calls, paths
    )


def growth(candidates: Iterable[Candidate], offer: Offer, calls: SolverCalls, paths: int | None) -> Resize | None:
    """The job that gains most by free nodes, at the largest size that fits. One at a time: the next look sees what it
    left."""
    for each in sorted(candidates, key=lambda each: (-each.record.priority, each.size, each.record.id)):
        sizes = [size for size in each.sizes if each.pays(size)]
        if sizes and (found := largest_placed(each.record, sizes, offer.without(each.record.id), calls, paths)):
            return found
    return None


def room_for(
    waiting: WaitingJob,
    record: JobRecord,
    candidates: Iterable[Candidate],
    offer: Offer,
    calls: SolverCalls,
    paths: int | None,
) -> Resize | None:
    """The malleable job that shrinks so that a waiting one gets a place: the one with most workers to spare, by as few
    as it takes."""
    spare = [each for each in candidates if each.size > each.sizes[0]]
    for each in sorted(spare, key=lambda each: (each.record.priority, each.sizes[0] - each.size, each.record.id)):
        left = offer.without(each.record.id)
        smallest = place(at_size(each.record, each.sizes[0]), left, calls, paths)
        if smallest is None:
            continue
        plan = calls(waiting, left.less({each.record.id: smallest.cells}).cluster).plan
        if plan is None:
            continue
        decision = decision_of(record, waiting, plan, left.less({each.record.id: smallest.cells}), calls)
        beside = left.less({waiting.name: decision.cells})
        smaller = [size for size in each.sizes if size < each.size]
        found = largest_placed(each.record, smaller, beside, calls, paths)
        if found is not None:
            return found
    return None


def rebalance(candidates: Sequence[Candidate], offer: Offer, calls: SolverCalls, paths: int | None) -> Resize | None:
    """A job that gives workers to another one, which gains clearly more by them; the other one grows once they are
    gone."""
    takers = sorted(candidates, key=lambda each: (each.size, each.record.id))
    for taker in takers:
        for giver in sorted(candidates, key=lambda each: (-each.size, each.record.id)):
            if giver.record.id == taker.record.id or giver.record.priority > taker.record.priority:
                continue
            sizes = _balanced(taker, giver)
            if sizes is None or not taker.pays(sizes[0]):
                continue
            left = offer.without(taker.record.id).without(giver.record.id)
            taken = place(at_size(taker.record, sizes[0]), left, calls, paths)
            if taken is None:
                continue
            given = at_size(giver.record, sizes[1])
            decision = place(given, left.less({taker.record.id: taken.cells}), calls, paths)
            if decision is not None:
                return Resize(given, decision)
    return None


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
