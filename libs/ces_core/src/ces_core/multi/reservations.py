"""Room that is kept for jobs that have waited long: found, kept up, and never given away to those behind them.

A reservation is a plan and the moment from which it fits beside everything that will still run then. A later job may
start only where it is gone by that moment or fits beside the plan (:meth:`ces_core.multi.outlook.Outlook.use`), so no
start behind a reservation delays it. Only what nobody said can: a job that runs longer than expected, a lost node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ces_core.ledger import Cell, cells_of
from ces_core.multi.jobs import WaitingJob
from ces_core.multi.outlook import Moment, Outlook, end_after, seconds_of
from ces_core.plan import Plan, Result
from ces_core.problem import Cluster

Solve = Callable[[WaitingJob, Cluster], Result]
"""The single-job solver: a place for the job on this cluster, or the reason why there is none."""


@dataclass(frozen=True)
class Preempted:
    """Running jobs that are to give up for another what :class:`RunningJob` says: ``suspended`` a part of what they
    hold, ``stopped`` all."""

    suspended: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.suspended, *self.stopped)


@dataclass(frozen=True)
class Reservation:
    """``begin``: from when on the plan has room. ``waits_for``: the running jobs that hold some of it until then.
    ``preempted``: those that make room for it; None where it waits for others to end."""

    job: str
    begin: Moment
    plan: Plan
    cells: Mapping[Cell, float]
    waits_for: tuple[str, ...]
    preempted: Preempted | None = None

    @property
    def start_s(self) -> float | None:
        """None where it depends on jobs that say no duration."""
        return seconds_of(self.begin)


def reserve(outlook: Outlook, job: WaitingJob, solve: Solve) -> Reservation | None:
    """The earliest start that is found for the job beside everything that runs and is reserved, and room for it; None
    where it has no place even when all that is known to end has ended.

    The moments are halved, which finds the earliest where more room never makes a solver refuse.
    """
    moments = outlook.moments()

    def tried(step: int) -> Plan | None:
        begin = moments[step]
        use = outlook.use(begin, end_after(begin, job.expected_s))
        return solve(job, outlook.cluster(use)).plan

    found = least(len(moments) - 1, tried)  # the present has been tried
    return None if found is None else _made(outlook, job, moments[found[0]], found[1])


def least(most: int, tried: Callable[[int], Plan | None]) -> tuple[int, Plan] | None:
    """The least step from 1 to ``most`` at which there is a plan, found by halving; None where there is none at the
    last. ``tried``: by step, each of which offers more room than those before."""
    low, high = 0, most
    found = tried(high)
    if found is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        plan = tried(middle)
        if plan is None:
            low = middle
        else:
            high, found = middle, plan
    return high, found


def renew(outlook: Outlook, job: WaitingJob, kept: Reservation) -> Reservation | None:
    """The same plan at the earliest moment at which it fits now; None where it never does, as when a node was lost."""
    for begin in outlook.moments():
        if outlook.holds(begin, end_after(begin, job.expected_s), kept.cells):
            return replace(kept, begin=begin, waits_for=outlook.waits_for(begin, kept.cells))
    return None


def moved_to(cluster: Cluster, job: WaitingJob, kept: Reservation) -> Reservation | None:
    """The same plan on another cluster; None where a node, a way or a permission that it needs is not there."""
    problem = job.on(cluster)
    nodes = cluster.topology.node_index
    places = [nodes.get(kept.plan.assignments[task.name]) for task in problem.tasks]
    if any(node is None or not problem.allowed[task, node] for task, node in enumerate(places)):
        return None
    try:
        cells = cells_of(problem, kept.plan)
    except KeyError:
        return None
    return replace(kept, cells=cells)


def _made(outlook: Outlook, job: WaitingJob, begin: Moment, plan: Plan) -> Reservation:
    cells = cells_of(job.problem, plan)
    return Reservation(job.name, begin, plan, cells, outlook.waits_for(begin, cells))
