"""Large holes are kept whole: a job is first offered the nodes with least room that could hold it.

Single-job solvers balance: they put tasks where most is free, and so leave a little everywhere, and nowhere enough for
a large task. What a solver is not shown it cannot break up.
"""

from __future__ import annotations

import numpy as np

from ces_core.multi.jobs import WaitingJob
from ces_core.problem import Cluster


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
