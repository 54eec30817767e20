"""Reservations for jobs that have waited long: found, kept up, and never given away to jobs behind them.

A reservation is a plan and the moment from which it fits beside everything that still runs then. A later job may start
only if it is gone by that moment or fits beside the plan (:meth:`ces_core.queue.outlook.Outlook.use`), so backfilling
never delays a reservation. Only the unforeseen does: a job that overruns its stated time, or a lost node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ces_core.model.plan import Plan, Result
from ces_core.model.problem import Cluster
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.ledger import Cell, cells_of
from ces_core.queue.outlook import Moment, Outlook, end_after, seconds_of

Solve = Callable[[WaitingJob, Cluster], Result]
"""The single-job solver: a plan for the job on this cluster, or the reason why there is none."""


@dataclass(frozen=True)
class Preempted:
    """Running jobs that make way for another: ``suspended`` give up a part of what they hold (see :class:`RunningJob`),
    ``stopped`` all of it."""

    suspended: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.suspended, *self.stopped)


@dataclass(frozen=True)
class Reservation:
    """A plan and when it can start. ``begin``: the moment from which it fits. ``waits_for``: running jobs that hold
    some of its capacity until then. ``preempted``: jobs that make way for it; None if it waits for jobs to end by
    themselves."""

    job: str
    begin: Moment
    plan: Plan
    cells: Mapping[Cell, float]
    waits_for: tuple[str, ...]
    preempted: Preempted | None = None

    @property
    def start_s(self) -> float | None:
        """The expected start; None if it depends on jobs without a stated run time."""
        return seconds_of(self.begin)


def reserve(outlook: Outlook, job: WaitingJob, solve: Solve) -> Reservation | None:
    """A reservation at the earliest start found beside everything that runs and is reserved; None if the job does not
    fit even after all known ends.

    The start is found by bisection: it is the earliest one as long as more capacity never makes a solver refuse.
    """
    moments = outlook.moments()

    def tried(step: int) -> Plan | None:
        begin = moments[step]
        use = outlook.use(begin, end_after(begin, job.expected_s))
        return solve(job, outlook.cluster(use)).plan

    found = least(len(moments) - 1, tried)  # the present has been tried
    return None if found is None else _made(outlook, job, moments[found[0]], found[1])


def least(most: int, tried: Callable[[int], Plan | None]) -> tuple[int, Plan] | None:
    """The least step from 1 to ``most`` with a plan, by bisection; None if the last has none. ``tried``: by step, each
    offering more capacity than those before."""
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
    """The same plan at the earliest moment at which it fits now; None if it never does, such as after a lost node."""
    for begin in outlook.moments():
        if outlook.holds(begin, end_after(begin, job.expected_s), kept.cells):
            return replace(kept, begin=begin, waits_for=outlook.waits_for(begin, kept.cells))
    return None


def moved_to(cluster: Cluster, job: WaitingJob, kept: Reservation) -> Reservation | None:
    """The same plan on another cluster; None if a node, path or permission it needs is missing."""
    problem = job.on(cluster)
    nodes = cluster.topology.node_index
    places = [nodes.get(kept.plan.assignments[task.name]) for task in problem.tasks]
    if any(node is None or not problem.allowed[task, node] for task, node in enumerate(places)):
        return None
    try:
        cells = cells_of(problem, kept.plan, cluster.cards)
    except KeyError:
        return None
    return replace(kept, cells=cells)


def _made(outlook: Outlook, job: WaitingJob, begin: Moment, plan: Plan) -> Reservation:
    cells = cells_of(job.problem, plan, outlook.cards)
    return Reservation(job.name, begin, plan, cells, outlook.waits_for(begin, cells))
