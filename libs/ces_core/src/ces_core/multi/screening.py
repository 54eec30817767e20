"""What can be seen of the whole queue at once, without a solver: who asks for more than there is, on any node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ces_core.multi.scoring import Table
from ces_core.problem import RESOURCES, SLACK, Cluster, FloatArray
from ces_core.reason import Reason


@dataclass(frozen=True, eq=False)
class Room:
    """What is free of a cluster. ``free``: (resources, nodes); ``total`` and ``most``: (resources,), on all nodes
    together and on one; ``best``: the node with the most."""

    free: FloatArray
    total: FloatArray
    most: FloatArray
    best: tuple[str, ...]
    slack: FloatArray

    @staticmethod
    def of(cluster: Cluster) -> Room:
        free = cluster.node_free
        best = tuple(cluster.topology.nodes[node] for node in free.argmax(axis=1).tolist())
        slack = SLACK * cluster.node_capacity.max(axis=1, initial=0.0)
        return Room(free + SLACK * cluster.node_capacity, free.sum(axis=1), free.max(axis=1, initial=0.0), best, slack)

    def holds(self, table: Table, among: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(jobs,): those of ``among`` whose tasks together ask for no more than is free, and none of them for more than
        some node has free of everything at once."""
        fits = among & (table.demand[:, : len(RESOURCES)] <= self.total * (1 + SLACK)).all(axis=1)
        homed = np.ones(len(table.tasks), dtype=np.bool_)
        asked = np.repeat(fits, table.count)
        homed[asked] = self._homed(table.tasks[asked])
        if table.jobs:
            fits &= np.logical_and.reduceat(homed, table.first)
        return fits

    def _homed(self, tasks: FloatArray) -> NDArray[np.bool_]:
        """(tasks,): whether any node has enough for the task, of everything at once."""
        homed = np.ones((len(tasks), self.free.shape[1]), dtype=np.bool_)
        for needed, left in zip(tasks.T, self.free, strict=True):
            if needed.any():
                homed &= needed[:, None] <= left[None, :]
        return np.asarray(homed.any(axis=1))

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
        homeless = np.flatnonzero(~self._homed(job.problem.demand))
        if not len(homeless):
            return None
        return Reason("no-node-fits", permanent, True, task=job.problem.tasks[int(homeless[0])].name)
