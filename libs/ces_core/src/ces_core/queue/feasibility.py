"""Quick feasibility screens, without a solver and leaving bandwidth aside: which jobs of the whole queue ask for more
than is free, and whether the tasks of one job fit on the nodes together.

They take a fraction of a millisecond. Solvers take longest over jobs that do not fit, so this spares most of that time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ces_core.model.plan import Considered, Result
from ces_core.model.problem import RESOURCES, SLACK, BoolArray, Cluster, FloatArray, Problem
from ces_core.model.reason import Reason
from ces_core.model.too_few import NodeCount
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.ledger import TOLERANCE
from ces_core.queue.reservations import Solve
from ces_core.queue.scores import Table

SCREEN = "screen"
"""The solver named in a refusal that came from the screen."""
UNSEARCHED = Considered((), (), np.zeros((0, 0), dtype=np.int8))
STEPS = 400
"""At most this many placements are tried. If that does not settle it, the tasks may fit."""


def screened(solve: Solve) -> Solve:
    """The solver behind the screen: it is not asked about jobs whose tasks cannot fit on the nodes together."""

    def answer(job: WaitingJob, cluster: Cluster) -> Result:
        reason = apart(job.on(cluster))
        return solve(job, cluster) if reason is None else Result(SCREEN, UNSEARCHED, reason=reason)

    return answer


def apart(problem: Problem) -> Reason | None:
    """Why the tasks cannot fit on the nodes together, whatever the links; None if they may."""
    stuck = _stuck(problem)
    if stuck is None:
        return None
    permanent = _stuck(problem.on_empty_cluster()) is not None
    return Reason("packing", permanent, True, task=problem.tasks[stuck].name)


def _stuck(problem: Problem) -> int | None:
    """The task most often left without a node, once every placement was tried and none holds all tasks."""
    cluster = problem.cluster
    free = cluster.node_free + TOLERANCE * cluster.node_capacity  # what rounding may add up to is no proof
    order = np.argsort(-free.sum(axis=0), kind="stable")
    residual: list[list[float]] = free[:, order].T.tolist()
    demand: list[list[float]] = problem.demand.tolist()
    packed = np.packbits(problem.homes[:, order], axis=1, bitorder="little")
    homes = [int.from_bytes(row.tobytes(), "little") for row in packed]
    often = [0] * len(demand)
    steps = STEPS

    def placed(left: list[int], homes: list[int]) -> bool:
        """Whether the remaining tasks can be placed, fewest candidate nodes first. Also True if the steps ran out."""
        nonlocal steps
        if not left:
            return True
        task = min(left, key=lambda each: (homes[each].bit_count(), each))
        others = [each for each in left if each != task]
        nodes = homes[task]
        if not nodes:
            often[task] += 1
            return False
        while nodes:
            bit = nodes & -nodes
            nodes ^= bit
            steps -= 1
            if steps <= 0:
                return True
            before = residual[bit.bit_length() - 1]
            after = [has - takes for has, takes in zip(before, demand[task], strict=True)]
            then = homes.copy()
            for each in others:
                if then[each] & bit and any(takes > has for takes, has in zip(demand[each], after, strict=True)):
                    then[each] ^= bit
            residual[bit.bit_length() - 1] = after
            found = placed(others, then)
            residual[bit.bit_length() - 1] = before
            if found:
                return True
        return False

    if placed(list(range(len(demand))), homes):
        return None
    return max(range(len(demand)), key=lambda each: (often[each], -each))


@dataclass(frozen=True, eq=False)
class FreeCapacity:
    """The free capacity of a cluster. ``free``: (resources, nodes); ``total`` and ``most``: (resources,), over all
    nodes and on a single one; ``best``: the node with the most."""

    free: FloatArray
    total: FloatArray
    most: FloatArray
    best: tuple[str, ...]
    slack: FloatArray
    cluster: Cluster

    @staticmethod
    def of(cluster: Cluster) -> FreeCapacity:
        free = cluster.node_free
        best = tuple(cluster.topology.nodes[node] for node in free.argmax(axis=1).tolist())
        slack = SLACK * cluster.node_capacity.max(axis=1, initial=0.0)
        return FreeCapacity(
            free + SLACK * cluster.node_capacity, free.sum(axis=1), free.max(axis=1, initial=0.0), best, slack, cluster
        )

    def holds(self, table: Table, among: BoolArray) -> BoolArray:
        """(jobs,): jobs of ``among`` whose total demand is within what is free, and each of whose tasks fits on some
        node."""
        fits = among & (table.demand[:, : len(RESOURCES)] <= self.total * (1 + SLACK)).all(axis=1)
        homed = np.ones(len(table.tasks), dtype=np.bool_)
        asked = np.repeat(fits, table.count)
        homed[asked] = self._homed(table.tasks[asked])
        if table.jobs:
            fits &= np.logical_and.reduceat(homed, table.first)
        return fits

    def _homed(self, tasks: FloatArray) -> BoolArray:
        """(tasks,): whether some node has enough of every resource for the task."""
        homed = np.ones((len(tasks), self.free.shape[1]), dtype=np.bool_)
        for needed, left in zip(tasks.T, self.free, strict=True):
            if needed.any():
                homed &= needed[:, None] <= left[None, :]
        return np.asarray(homed.any(axis=1))

    def hindrance(self, table: Table, line: int, *, permanent: bool) -> Reason | None:
        """Why the job does not fit; None if it may. ``permanent``: this is all the capacity that exists."""
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

    def by_node(self, job: WaitingJob, reason: Reason) -> Reason:
        """The reason, counted by node where nodes are the obstacle. On this capacity, or on all there is where it is
        permanent: a solver may have seen less, or earlier."""
        count = self._in_all if reason.permanent else self._count
        if reason.code in ("packing", "no-node-fits"):
            return replace(reason, nodes=count.too_few(job.problem))
        if reason.code.endswith("-total") and reason.resource in RESOURCES:
            return replace(reason, nodes=count.too_few(job.problem, RESOURCES.index(reason.resource)))
        if reason.code.endswith("-per-node") and reason.resource in RESOURCES:
            row = RESOURCES.index(reason.resource)
            return replace(reason, nodes=count.for_task(job.problem, int(job.problem.demand[:, row].argmax()), row))
        return reason

    @cached_property
    def _count(self) -> NodeCount:
        return NodeCount.of(self.cluster)

    @cached_property
    def _in_all(self) -> NodeCount:
        return NodeCount.of(self.cluster.emptied())
