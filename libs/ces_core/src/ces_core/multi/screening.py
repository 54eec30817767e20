"""What can be seen of the whole queue at once, without a solver: who asks for more than there is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ces_core.multi.scoring import Table
from ces_core.problem import RESOURCES, SLACK, Cluster, FloatArray
from ces_core.reason import Reason


@dataclass(frozen=True, eq=False)
class Room:
    """What is free of a cluster. ``total`` and ``most``: (resources,), on all nodes together and on one; ``best``: the
    node with the most."""

    total: FloatArray
    most: FloatArray
    best: tuple[str, ...]
    slack: FloatArray

    @staticmethod
    def of(cluster: Cluster) -> Room:
        free = cluster.node_free
        best = tuple(cluster.topology.nodes[node] for node in free.argmax(axis=1).tolist())
        slack = SLACK * cluster.node_capacity.max(axis=1, initial=0.0)
        return Room(free.sum(axis=1), free.max(axis=1, initial=0.0), best, slack)

    def holds(self, table: Table) -> NDArray[np.bool_]:
        """(jobs,): False where the tasks together, or one of them alone, ask for more of a resource than is free."""
        fits = table.demand[:, : len(RESOURCES)] <= self.total * (1 + SLACK)
        fits &= table.largest <= self.most + self.slack
        return np.asarray(fits.all(axis=1))

    def hindrance(self, table: Table, line: int, *, permanent: bool) -> Reason | None:
        """Why the room does not hold the job, None where it does. ``permanent``: this is all that there is."""
        job = table.jobs[line]
        largest, demand = job.largest.tolist(), job.demand.tolist()
        for row, resource in enumerate(RESOURCES):
            needed, most = largest[row], float(self.most[row])
            if needed > most + float(self.slack[row]):
                task = job.problem.tasks[int(np.argmax(job.problem.demand[:, row]))].name
                return Reason(f"{resource}-per-node", permanent, True, resource, needed, most, self.best[row], task)
            needed, total = demand[row], float(self.total[row])
            if needed > total * (1 + SLACK):
                return Reason(f"{resource}-total", permanent, True, resource, needed, total)
        return None
