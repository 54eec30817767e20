"""What can be seen of the whole queue at once, without a solver: who asks for more than there is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ces_core.multi.scoring import Table
from ces_core.problem import RESOURCES, SLACK, Cluster
from ces_core.reason import Reason


def possible(table: Table, cluster: Cluster) -> NDArray[np.bool_]:
    """(jobs,): False where the tasks together, or one of them alone, ask for more of a resource than is free."""
    count = len(RESOURCES)
    total, most = cluster.node_free.sum(axis=1), cluster.node_free.max(axis=1, initial=0.0)
    fits = table.demand[:, :count] <= total * (1 + SLACK)
    fits &= table.largest <= most + SLACK * cluster.node_capacity.max(axis=1, initial=0.0)
    return np.asarray(fits.all(axis=1))


def hindrance(table: Table, line: int, cluster: Cluster, empty: Cluster) -> Reason | None:
    """Why the job is not possible, None where it is. ``empty``: the cluster without any job."""
    for where, permanent in ((empty, True), (cluster, False)):
        job, free = table.jobs[line], where.node_free
        for row, resource in enumerate(RESOURCES):
            needed, most = float(job.largest[row]), float(free[row].max(initial=0.0))
            if needed > most + SLACK * float(where.node_capacity[row].max(initial=0.0)):
                task = job.problem.tasks[int(np.argmax(job.problem.demand[:, row]))].name
                best = cluster.topology.nodes[int(np.argmax(free[row]))]
                return Reason(f"{resource}-per-node", permanent, True, resource, needed, most, best, task)
            needed, total = float(job.demand[row]), float(free[row].sum())
            if needed > total * (1 + SLACK):
                return Reason(f"{resource}-total", permanent, True, resource, needed, total)
    return None
