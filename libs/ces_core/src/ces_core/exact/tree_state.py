"""State of the tree search: decisions taken, residual capacity and exact undo; and the cost tables from which it
computes its bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.exact.form import Form
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray

NODE_SUM, NODE_SQUARES, LINK_SUM, LINK_SQUARES, LOST = 0, 2, 4, 5, 6
"""Indices of ``State.sums``: sums of utilisation (CPU, memory), of their squares, those of the links, and satisfaction
lost at anchored rates. All are exact: undo restores the previous numbers."""
SUMS = 7

CELLS = 6
"""Intervals of the mean distinguished by the bound on a standard deviation."""


class State(NamedTuple):
    """Arrays that change; names as in :class:`~ces_core.exact.form.Form`. Placed flows have their anchors as rates."""

    node_of: IntArray  # (T,) or -1
    path_of: IntArray  # (F,) or -1
    free: FloatArray  # (3, C)
    use: FloatArray  # (2, C)
    sums: FloatArray  # (SUMS,)
    link_use: FloatArray  # (R,)
    reserve: FloatArray  # (R,) residual capacity beside the minimums of placed flows
    saved_sums: FloatArray  # (L, SUMS)
    saved_node: FloatArray  # (L, 5)
    saved_path: FloatArray  # (L, 2, longest path)


def fresh_state(form: Form) -> State:
    """Nothing is placed."""
    levels = len(form.level_task)
    sums = np.zeros(SUMS)
    sums[NODE_SUM : NODE_SUM + 2] = form.node_sum
    sums[NODE_SQUARES : NODE_SQUARES + 2] = form.node_squares
    sums[LINK_SUM], sums[LINK_SQUARES] = form.link_sum, form.link_squares
    longest = int(np.diff(form.path_first).max(initial=1))
    return State(
        node_of=np.full(len(form.demand), -1, dtype=np.int64),
        path_of=np.full(len(form.src), -1, dtype=np.int64),
        free=form.free.copy(),
        use=form.use.copy(),
        sums=sums,
        link_use=form.link_use.copy(),
        reserve=form.residual.copy(),
        saved_sums=np.zeros((levels, SUMS)),
        saved_node=np.zeros((levels, 5)),
        saved_path=np.zeros((levels, 2, max(1, longest))),
    )


@compiled
def end_node(node_of: IntArray, end: int) -> int:
    """The candidate at this end of a flow, or -1 while its task is not placed."""
    if end < 0:
        return -1 - end
    return int(node_of[end])


@compiled
def fits_now(allowed: bool, demand: FloatArray, free: FloatArray, node: int) -> bool:
    """Whether the demand fits into the residual capacity of the node, if it is allowed there."""
    return bool(allowed and demand[0] <= free[0, node] and demand[1] <= free[1, node] and demand[2] <= free[2, node])


@compiled
def path_cost(form: Form, state: State, flow: int, path: int, out: FloatArray) -> bool:
    """Writes to ``out`` what anchoring ``flow`` on ``path`` adds to the links' sum of squares and to their sum, and the
    D it loses.

    Returns False where its minimum no longer fits.
    """
    low, worth = form.low[flow], form.worth[flow]
    residual, load = np.inf, 0.0
    for i in range(form.path_first[path], form.path_first[path + 1]):
        r = form.resource[i]
        residual = min(residual, state.reserve[r] / form.times[i])
        load += state.link_use[r] * form.inverse[r] * form.times[i]
    if residual < low:
        return False
    rate = min(form.high[flow], form.width[path])
    out[0] = rate * (rate * form.kappa2[path] + 2.0 * load)
    out[1] = rate * form.kappa[path]
    gain = worth - form.eta[path]
    if worth == 0.0 or form.path_first[path] == form.path_first[path + 1]:
        out[2] = 0.0
    elif gain < 0.0:
        out[2] = worth * (form.high[flow] - rate) + gain * (rate - low)
    else:
        out[2] = worth * (form.high[flow] - rate) + gain * (rate - min(rate, residual))
    return True


@compiled
def place(form: Form, state: State, level: int, task: int, node: int) -> None:
    """Puts the task on the node and saves what :func:`take_back` restores."""
    sums, saved = state.sums, state.saved_node
    state.saved_sums[level] = sums
    state.node_of[task] = node
    for r in range(3):
        saved[level, r] = state.free[r, node]
        state.free[r, node] -= form.demand[task, r]
    for r in range(2):
        before, more = state.use[r, node], form.more[r, task, node]
        saved[level, 3 + r] = before
        state.use[r, node] = before + more
        sums[NODE_SUM + r] += more
        sums[NODE_SQUARES + r] += more * (2.0 * before + more)


@compiled
def take_back(form: Form, state: State, level: int, task: int) -> None:
    """Undoes :func:`place`."""
    node = state.node_of[task]
    state.node_of[task] = -1
    state.sums[:] = state.saved_sums[level]
    for r in range(3):
        state.free[r, node] = state.saved_node[level, r]
    for r in range(2):
        state.use[r, node] = state.saved_node[level, 3 + r]


@compiled
def route(form: Form, state: State, level: int, flow: int, path: int, cost: FloatArray) -> None:
    """Routes the flow on the path; ``cost`` comes from :func:`path_cost`."""
    state.saved_sums[level] = state.sums
    state.path_of[flow] = path
    state.sums[LINK_SQUARES] += cost[0]
    state.sums[LINK_SUM] += cost[1]
    state.sums[LOST] += cost[2]
    rate = min(form.high[flow], form.width[path])
    first = form.path_first[path]
    for i in range(first, form.path_first[path + 1]):
        r = form.resource[i]
        state.saved_path[level, 0, i - first] = state.link_use[r]
        state.saved_path[level, 1, i - first] = state.reserve[r]
        state.link_use[r] += rate * form.times[i] * form.inverse[r]
        state.reserve[r] -= form.low[flow] * form.times[i]


@compiled
def unroute(form: Form, state: State, level: int, flow: int) -> None:
    """Undoes :func:`route`."""
    path = state.path_of[flow]
    state.path_of[flow] = -1
    state.sums[:] = state.saved_sums[level]
    first = form.path_first[path]
    for i in range(first, form.path_first[path + 1]):
        r = form.resource[i]
        state.link_use[r] = state.saved_path[level, 0, i - first]
        state.reserve[r] = state.saved_path[level, 1, i - first]


@compiled
def spread(total: float, squares: float, count: float) -> float:
    """Population standard deviation from a sum and a sum of squares."""
    mean = total / count
    return float(np.sqrt(max(0.0, squares / count - mean * mean)))


@compiled
def anchored(form: Form, state: State) -> float:
    """Z' of a complete placement."""
    sums, value = state.sums, state.sums[LOST]
    for r in range(2):
        value += form.weights[r] * spread(sums[NODE_SUM + r], sums[NODE_SQUARES + r], form.node_count[r])
    return float(value + form.weights[2] * spread(sums[LINK_SUM], sums[LINK_SQUARES], form.link_count))


class Tables(NamedTuple):
    """Arrays used by :func:`~ces_core.exact.bound.build`; ``scale``, ``row`` and ``limit`` outlive it, one per task
    (the last: for trials)."""

    scale: FloatArray  # (T + 1, 2) factors of the links' squares and sum in costs
    row: FloatArray  # (T + 1, F, C) minimum cost of a flow that closes with the task, by the task's node
    limit: FloatArray  # (T + 1, 6, 2) searched ranges of the three deviations and means
    range: FloatArray  # (6, 2) ranges that the latest build left possible
    pair: FloatArray  # (tables, C, C) remaining cost of two tasks that share a flow
    domain: IntArray  # (T, C)
    size: IntArray  # (T,)
    squares: FloatArray  # (F, Q) increase on each path: squares, sum, loss
    sums: FloatArray
    lost: FloatArray
    cell: FloatArray  # (3, CELLS)
    first: FloatArray  # (C,) scratch
    second: FloatArray
    left: FloatArray  # (sets,) remaining cost of each set on its node
    active: IntArray  # (sets,) per node, from its first set on: sets still possible
    sets: IntArray  # (C,) number of possible sets
    least: FloatArray  # (C,) the least of ``left``


def fresh_tables(form: Form) -> Tables:
    """Empty tables."""
    tasks, count = form.fits.shape
    flows, paths, sets = max(1, len(form.src)), len(form.kappa), len(form.set_first) - 1
    return Tables(
        scale=np.zeros((tasks + 1, 2)),
        row=np.zeros((tasks + 1, flows, count)),
        limit=np.array([[[0.0, np.inf]] * 6] * (tasks + 1)),
        range=np.zeros((6, 2)),
        pair=np.zeros((max(1, len(form.pairs)), count, count)),
        domain=np.zeros((tasks, count), dtype=np.int64),
        size=np.zeros(tasks, dtype=np.int64),
        squares=np.zeros((flows, paths)),
        sums=np.zeros((flows, paths)),
        lost=np.zeros((flows, paths)),
        cell=np.zeros((3, CELLS)),
        first=np.zeros(count),
        second=np.zeros(count),
        left=np.zeros(max(1, sets)),
        active=np.zeros(max(1, sets), dtype=np.int64),
        sets=np.zeros(count, dtype=np.int64),
        least=np.zeros(count),
    )


@compiled
def together(one: FloatArray, other: FloatArray, free: FloatArray) -> bool:
    """Whether two demands together fit into a node's free capacity."""
    return bool(one[0] + other[0] <= free[0] and one[1] + other[1] <= free[1] and one[2] + other[2] <= free[2])


@compiled
def ends(tables: Tables, end: int, placed: int, single: IntArray) -> IntArray:
    """Possible nodes of a flow's end: the placed node, or the task's domain."""
    if placed >= 0:
        single[0] = placed
        return single
    return tables.domain[end, : tables.size[end]]
