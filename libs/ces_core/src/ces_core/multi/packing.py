"""Where a job goes: on as few nodes as will do, where that costs its flows nothing.

Single-job solvers balance: they put tasks where most is free, and so leave a little everywhere, and nowhere enough for
a large task. What a solver is not shown it cannot break up, so a job is first offered the nodes with least room.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ces_core.ledger import TOLERANCE
from ces_core.multi.jobs import WaitingJob
from ces_core.multi.reservations import Solve
from ces_core.plan import Result
from ces_core.problem import Cluster


def offered(job: WaitingJob, cluster: Cluster, packing: Sequence[float], satisfied: float, solve: Solve) -> Result:
    """The plan on fewest nodes that satisfies the flows, else the one that satisfies them best, else what the solver
    says of the whole cluster. ``packing``, ``satisfied``: see :class:`ces_core.multi.parameters.Parameters`."""
    best: Result | None = None
    for spare in packing:
        fewer = narrowed(cluster, job, spare)
        if fewer is None:
            break
        found = solve(job, fewer)
        if satisfaction(found) >= satisfied - TOLERANCE:
            return found
        best = _better(best, found)
    return _better(best, solve(job, cluster))


def satisfaction(result: Result) -> float:
    """Of the plan's flows, 0 to 1; below 0 where there is no plan."""
    return -1.0 if result.metrics is None else result.metrics.bandwidth_satisfaction


def _better(one: Result | None, other: Result) -> Result:
    return one if one is not None and satisfaction(one) > satisfaction(other) + TOLERANCE else other


def narrowed(cluster: Cluster, job: WaitingJob, spare: float) -> Cluster | None:
    """The cluster with nothing free but on the nodes with least room, so many of them that they have ``spare`` times as
    much as the job asks for; None where that would be all nodes that could hold a task."""
    problem = job.on(cluster)
    free, largest = cluster.node_free, cluster.node_capacity.max(axis=1)
    usable = np.flatnonzero(problem.homes.any(axis=0))
    room = np.divide(free, largest[:, None], out=np.zeros_like(free), where=largest[:, None] > 0).sum(axis=0)
    order = usable[np.argsort(room[usable], kind="stable")]
    wanted = spare * problem.demand.sum(axis=0)
    enough = (np.cumsum(free[:, order], axis=1) >= wanted[:, None]).all(axis=0)
    count = int(np.argmax(enough)) + 1 if enough.any() else len(order)
    if count >= len(order):
        return None
    used = np.maximum(cluster.node_used, cluster.node_capacity)
    used[:, order[:count]] = cluster.node_used[:, order[:count]]
    return cluster.with_used(used, cluster.link_used)
