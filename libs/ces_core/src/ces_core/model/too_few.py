"""Why tasks have no place, counted by node: too few nodes have enough free for them, whatever the links."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ces_core.model.problem import RESOURCES, BoolArray, Cluster, FloatArray, Problem
from ces_core.model.reason import TooFewNodes

TOLERANCE = 1e-9
"""Relative: what rounding may add up to is no proof."""
SHAPES = 8
"""Where tasks ask for more different amounts, those that most ask for are looked at."""
SETS: list[list[tuple[int, ...]]] = [[(0,), (1,), (2,)], [(0, 1), (0, 2), (1, 2)], [(0, 1, 2)]]
"""Rows of resources that may be what nodes have too little of: one alone is the simplest explanation."""
KINDS = 100
"""Jobs that differ and are counted on one cluster: each takes some 50 microseconds, and ten thousand may wait."""
Key = tuple[object, ...]


def too_few_nodes(problem: Problem, resource: int | None = None) -> TooFewNodes | None:
    """An amount that more tasks ask for at least than the nodes that they may use can hold; None where none is found,
    which proves nothing. Of all such amounts, one of the fewest resources by which most tasks are left over.

    ``resource``: the row that it is to be about; None: any, also several that no node has together."""
    return NodeCount.of(problem.cluster).too_few(problem, resource)


def nodes_for(problem: Problem, task: int, resource: int) -> TooFewNodes | None:
    """The same about as much of the resource as this task needs; None also where no other one needs so much."""
    return NodeCount.of(problem.cluster).for_task(problem, task, resource)


@dataclass(frozen=True, eq=False)
class NodeCount:
    """What each node of a cluster can hold; for problems on the nodes of this cluster, whatever their own has free.
    ``free`` and ``capacity``: (resources, nodes), with tolerance. Jobs that are alike are counted once; after ``KINDS``
    others nothing more is found."""

    free: FloatArray
    capacity: FloatArray
    _known: dict[Key, TooFewNodes | None] = field(default_factory=dict)

    @staticmethod
    def of(cluster: Cluster) -> NodeCount:
        slack = TOLERANCE * cluster.node_capacity
        return NodeCount(cluster.node_free + slack, cluster.node_capacity + slack)

    def too_few(self, problem: Problem, resource: int | None = None) -> TooFewNodes | None:
        """See :func:`too_few_nodes`."""
        key = (resource, problem.demand.tobytes(), problem.allowed.tobytes())
        if key not in self._known and len(self._known) < KINDS:
            self._known[key] = self._too_few(problem, resource)
        return self._known.get(key)

    def for_task(self, problem: Problem, task: int, resource: int) -> TooFewNodes | None:
        """See :func:`nodes_for`."""
        shape = problem.demand[task]
        key = (resource, shape[resource], problem.demand.tobytes(), problem.allowed.tobytes())
        if key not in self._known and len(self._known) < KINDS:
            found = self._left_over(problem, (resource,), shape)
            self._known[key] = found if found is not None and found.needed > 1 else None
        return self._known.get(key)

    def _too_few(self, problem: Problem, resource: int | None) -> TooFewNodes | None:
        shapes = _shapes(problem.demand)
        tried: list[list[tuple[int, ...]]] = SETS if resource is None else [[(resource,)]]
        for sets in tried:
            found = [self._left_over(problem, rows, shape) for rows in sets for shape in shapes]
            proofs = [each for each in found if each is not None]
            if proofs:
                return max(proofs, key=lambda each: each.needed - each.available)
        return None

    def _left_over(self, problem: Problem, rows: tuple[int, ...], shape: FloatArray) -> TooFewNodes | None:
        """Whether the nodes cannot hold all tasks that ask for as much of these resources, or more."""
        if not all(shape[row] for row in rows):
            return None
        asking: BoolArray = np.logical_and.reduce([problem.demand[:, row] >= shape[row] for row in rows])
        needed = int(np.count_nonzero(asking))
        among = problem.allowed[asking].any(axis=0)
        places = self._places(self.free, rows, shape, needed)[among]
        available = int(places.sum())
        if available >= needed:
            return None
        return TooFewNodes(
            each={RESOURCES[row]: float(shape[row]) for row in rows},
            needed=needed,
            available=available,
            nodes=int(np.count_nonzero(places)),
            apart=needed == 1 or bool((self._places(self.capacity, rows, shape, 2)[among] < 2).all()),
        )

    @staticmethod
    def _places(amounts: FloatArray, rows: tuple[int, ...], shape: FloatArray, most: int) -> FloatArray:
        """(nodes,): how many times so much fits on each, up to ``most``."""
        times = np.minimum(amounts[rows[0]] / shape[rows[0]], float(most))
        for row in rows[1:]:
            times = np.minimum(times, amounts[row] / shape[row])
        return np.asarray(np.floor(times))


def _shapes(demand: FloatArray) -> FloatArray:
    """(shapes, resources): the different demands."""
    if (demand == demand[:1]).all():
        return demand[:1]
    shapes, counts = np.unique(demand, axis=0, return_counts=True)
    return np.asarray(shapes[np.argsort(-counts, kind="stable")[:SHAPES]])
