"""Why tasks have no place, counted by node: too few nodes have enough free for them, whatever the links."""

from __future__ import annotations

import numpy as np

from ces_core.model.problem import RESOURCES, FloatArray, Problem
from ces_core.model.reason import TooFewNodes
from ces_core.model.topology import IntArray

TOLERANCE = 1e-9
"""Relative: what rounding may add up to is no proof."""
SHAPES = 8
"""Where tasks ask for more different amounts, those that most ask for are looked at."""
SETS = [[(0,), (1,), (2,)], [(0, 1), (0, 2), (1, 2)], [(0, 1, 2)]]
"""Rows of resources that may be what nodes have too little of: one alone is the simplest explanation."""


def too_few_nodes(problem: Problem, resource: int | None = None) -> TooFewNodes | None:
    """An amount that more tasks ask for at least than the nodes that they may use can hold; None where none is found,
    which proves nothing. Of all such amounts, one of the fewest resources by which most tasks are left over.

    ``resource``: the row that it is to be about; None: any, also several that no node has together."""
    shapes = _shapes(problem.demand)
    for sets in SETS if resource is None else [[(resource,)]]:
        found = [_left_over(problem, rows, shape) for rows in sets for shape in shapes]
        proofs = [each for each in found if each is not None]
        if proofs:
            return max(proofs, key=lambda each: each.needed - each.available)
    return None


def nodes_for(problem: Problem, task: int, resource: int) -> TooFewNodes | None:
    """The same about as much of the resource as this task needs; None also where no other one needs so much."""
    found = _left_over(problem, (resource,), problem.demand[task])
    return found if found is not None and found.needed > 1 else None


def _shapes(demand: FloatArray) -> FloatArray:
    """(shapes, resources): the different demands."""
    if (demand == demand[:1]).all():
        return demand[:1]
    shapes, counts = np.unique(demand, axis=0, return_counts=True)
    return np.asarray(shapes[np.argsort(-counts, kind="stable")[:SHAPES]])


def _left_over(problem: Problem, rows: tuple[int, ...], shape: FloatArray) -> TooFewNodes | None:
    """Whether the nodes cannot hold all tasks that ask for as much of these resources, or more."""
    row, amounts = list(rows), shape[list(rows)]
    if not amounts.all():
        return None
    asking = (problem.demand[:, row] >= amounts).all(axis=1)
    needed = int(asking.sum())
    among = problem.allowed[asking].any(axis=0)
    capacity = problem.cluster.node_capacity[row]
    places = _places(amounts, problem.cluster.node_free[row] + TOLERANCE * capacity, needed)[among]
    if places.sum() >= needed:
        return None
    most = _places(amounts, capacity * (1 + TOLERANCE), 2)[among]
    return TooFewNodes(
        each={RESOURCES[row]: float(amount) for row, amount in zip(rows, amounts, strict=True)},
        needed=needed,
        available=int(places.sum()),
        nodes=int(np.count_nonzero(places)),
        apart=needed == 1 or int(most.max(initial=0)) < 2,
    )


def _places(amounts: FloatArray, free: FloatArray, most: int) -> IntArray:
    """(nodes,): how many times the amounts fit on each, up to ``most``."""
    times: FloatArray = np.minimum((free / amounts[:, None]).min(axis=0), float(most))
    return np.floor(times).astype(np.int64)
