"""Preemption: which running jobs make way for a more urgent one. It picks few, of the lowest priority, latest started.

A job is preempted as a whole. One that can be suspended gives up only CPU and bandwidth, if that is enough. The
decision is carried out elsewhere; until then the urgent job has a reservation, like one that is overdue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ces_core.model.plan import Plan
from ces_core.model.problem import RESOURCES
from ces_core.queue.jobs import RunningJob, WaitingJob
from ces_core.queue.ledger import LINK, Cell, cells_of
from ces_core.queue.outlook import Outlook, end_of
from ces_core.queue.reservations import Preempted, Reservation, Solve, least

Held = Callable[[str], Mapping[Cell, float]]
"""What a running job holds."""
Released = Mapping[str, Mapping[Cell, float]]
"""Job -> what it would give up."""
FROZEN = frozenset({RESOURCES.index("cpu"), LINK})
"""The resources that a suspended job does not use."""
MOMENTS_S = 10.0
"""Nobody is preempted to save less than this: stopping a job takes about as long."""


def victims_of(job: WaitingJob, running: Iterable[RunningJob], margin: int) -> list[RunningJob]:
    """Jobs that may have to make way for this one, cheapest first: lowest priority, then latest started."""
    found = (each for each in running if each.preemption is not None and job.priority - each.priority >= margin)
    return sorted(found, key=lambda each: (each.priority, -each.started_s, each.name))


def names_of(jobs: Iterable[RunningJob]) -> tuple[str, ...]:
    return tuple(job.name for job in jobs)


def starts_soon(outlook: Outlook, job: WaitingJob, running: Iterable[RunningJob], solve: Solve) -> bool:
    """Whether the job fits within moments without preemption, once leaving jobs are gone and jobs about to end have
    ended. A job past its stated end may go on."""
    now = outlook.now[1]
    going = [each.name for each in running if each.leaving or _ends_soon(each, now)]
    others = outlook.after(going)
    use = others.use(others.now, end_of(now, job.expected_s))
    return bool(going) and solve(job, others.cluster(use)).plan is not None


def _ends_soon(job: RunningJob, now: float) -> bool:
    return job.expected_s is not None and now < job.started_s + job.expected_s <= now + MOMENTS_S


def given_up(cells: Mapping[Cell, float], *, suspended: bool) -> dict[Cell, float]:
    """The part of a job's holdings that it gives up."""
    return {cell: amount for cell, amount in cells.items() if not suspended or cell[0] in FROZEN}


def preempt(
    outlook: Outlook, job: WaitingJob, victims: Sequence[RunningJob], held: Held, solve: Solve
) -> Reservation | None:
    """A reservation that starts once some of the victims have made way; None if even all of them do not suffice. The
    job must have no reservation."""
    mildest = {each.name: given_up(held(each.name), suspended=each.preemption == "suspend") for each in victims}
    whole = {each.name: dict(held(each.name)) for each in victims}
    for given in (mildest, whole) if mildest != whole else (whole,):
        found = _fewest(outlook, job, given, solve)
        if found is None:
            continue
        plan, chosen = found
        cells = cells_of(job.problem, plan, outlook.cards)
        for each in victims:  # whoever may keep something does, as far as the others give enough
            mild = {**chosen, each.name: mildest[each.name]}
            if each.name in chosen and chosen != mild and _holds(outlook.without(mild), job, cells):
                chosen = mild
        stopped = tuple(name for name in chosen if chosen[name] == whole[name])
        suspended = tuple(name for name in chosen if name not in stopped)
        return Reservation(job.name, outlook.soon, plan, cells, tuple(chosen), Preempted(suspended, stopped))
    return None


def _fewest(outlook: Outlook, job: WaitingJob, given: Released, solve: Solve) -> tuple[Plan, Released] | None:
    """A plan and what must be given up for it. The number of victims is found by bisection, exact as long as more
    capacity never makes a solver refuse; victims the plan does not need are dropped."""
    names = list(given)

    def tried(count: int) -> Plan | None:
        freed = outlook.without({name: given[name] for name in names[:count]})
        return solve(job, freed.cluster(freed.use(freed.now, end_of(freed.now[1], job.expected_s)))).plan

    found = least(len(names), tried)
    if found is None:
        return None
    high, plan = found
    chosen = {name: given[name] for name in names[:high]}
    cells = cells_of(job.problem, plan, outlook.cards)
    for name in reversed(names[:high]):  # first those that lose most
        fewer = {other: cells for other, cells in chosen.items() if other != name}
        if _holds(outlook.without(fewer), job, cells):
            chosen = fewer
    return plan, chosen


def _holds(outlook: Outlook, job: WaitingJob, cells: Mapping[Cell, float]) -> bool:
    return outlook.holds(outlook.now, end_of(outlook.now[1], job.expected_s), cells)
