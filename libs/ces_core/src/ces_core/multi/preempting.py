"""Which running jobs make room for a more urgent one: few, of the lowest priority, the latest started.

All of a job gives way, as all of it starts. Those that can be suspended give up CPU and bandwidth only, where that is
enough. What is decided here happens elsewhere; until it has, room is kept for the job, as for one that is overdue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ces_core.ledger import LINK, Cell, cells_of
from ces_core.multi.jobs import RunningJob, WaitingJob
from ces_core.multi.outlook import Outlook, end_of
from ces_core.multi.reservations import Preempted, Reservation, Solve, least
from ces_core.plan import Plan
from ces_core.problem import RESOURCES

Held = Callable[[str], Mapping[Cell, float]]
"""What a running job holds."""
Given = Mapping[str, Mapping[Cell, float]]
"""Job -> what it would give up."""
FROZEN = frozenset({RESOURCES.index("cpu"), LINK})
"""What a suspended job does not use."""
MOMENTS_S = 10.0
"""For less than this nobody is preempted: to stop a job takes about as long."""


def victims_of(job: WaitingJob, running: Iterable[RunningJob], margin: int) -> list[RunningJob]:
    """Those that may have to make room for the job; first those that lose least: of the lowest priority, and of these
    the latest started."""
    found = (each for each in running if each.preemption is not None and job.priority - each.priority >= margin)
    return sorted(found, key=lambda each: (each.priority, -each.started_s, each.name))


def names_of(jobs: Iterable[RunningJob]) -> tuple[str, ...]:
    return tuple(job.name for job in jobs)


def starts_soon(outlook: Outlook, job: WaitingJob, running: Iterable[RunningJob], held: Held, solve: Solve) -> bool:
    """Whether the job has a place within moments, without anybody's making room: who leaves will be gone, and who says
    so will have ended. Who runs for longer than it said may go on."""
    now = outlook.now[1]
    going = {each.name: held(each.name) for each in running if each.leaving or _ends_soon(each, now)}
    others = outlook.without(going)
    use = others.use(others.now, end_of(now, job.expected_s))
    return bool(going) and solve(job, others.cluster(use)).plan is not None


def _ends_soon(job: RunningJob, now: float) -> bool:
    return job.expected_s is not None and now < job.started_s + job.expected_s <= now + MOMENTS_S


def given_up(cells: Mapping[Cell, float], *, suspended: bool) -> dict[Cell, float]:
    """Of what a job holds."""
    return {cell: amount for cell, amount in cells.items() if not suspended or cell[0] in FROZEN}


def preempt(
    outlook: Outlook, job: WaitingJob, victims: Sequence[RunningJob], held: Held, solve: Solve
) -> Reservation | None:
    """Room for the job as soon as some of the victims have made it; None where not even all of them can. The job itself
    must have nothing reserved."""
    mildest = {each.name: given_up(held(each.name), suspended=each.preemption == "suspend") for each in victims}
    whole = {each.name: dict(held(each.name)) for each in victims}
    for given in (mildest, whole) if mildest != whole else (whole,):
        found = _fewest(outlook, job, given, solve)
        if found is None:
            continue
        plan, chosen = found
        cells = cells_of(job.problem, plan)
        for each in victims:  # whoever may keep something does, as far as the others give enough
            mild = {**chosen, each.name: mildest[each.name]}
            if each.name in chosen and chosen != mild and _holds(outlook.without(mild), job, cells):
                chosen = mild
        stopped = tuple(name for name in chosen if chosen[name] == whole[name])
        suspended = tuple(name for name in chosen if name not in stopped)
        return Reservation(job.name, outlook.soon, plan, cells, tuple(chosen), Preempted(suspended, stopped))
    return None


def _fewest(outlook: Outlook, job: WaitingJob, given: Given, solve: Solve) -> tuple[Plan, Given] | None:
    """A plan, and what has to be given up for it. How many give it is halved, which finds the fewest of their order
    where more room never makes a solver refuse; of these, those are left out that the plan does not need."""
    names = list(given)

    def tried(count: int) -> Plan | None:
        freed = outlook.without({name: given[name] for name in names[:count]})
        return solve(job, freed.cluster(freed.use(freed.now, end_of(freed.now[1], job.expected_s)))).plan

    found = least(len(names), tried)
    if found is None:
        return None
    high, plan = found
    chosen = {name: given[name] for name in names[:high]}
    cells = cells_of(job.problem, plan)
    for name in reversed(names[:high]):  # first those that lose most
        fewer = {other: cells for other, cells in chosen.items() if other != name}
        if _holds(outlook.without(fewer), job, cells):
            chosen = fewer
    return plan, chosen


def _holds(outlook: Outlook, job: WaitingJob, cells: Mapping[Cell, float]) -> bool:
    return outlook.holds(outlook.now, end_of(outlook.now[1], job.expected_s), cells)
