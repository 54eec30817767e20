"""The state of the tree search: what is placed, what that leaves, and how to step back exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.jit import compiled
from ces_core.kernels.tree_form import Form
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

NODE_SUM, NODE_SQUARES, LINK_SUM, LINK_SQUARES, LOST = 0, 2, 4, 5, 6
"""Where ``State.sums`` keeps the sums of utilisation (CPU, memory), of their squares, those of the links, and what the
anchored rates lose. All are exact: a step back restores the numbers that were there."""
SUMS = 7


class State(NamedTuple):
    """Arrays that change; the rest is as in :class:`Form`. Rates of placed flows are their anchors."""

    node_of: IntArray  # (T,) or -1
    path_of: IntArray  # (F,) or -1
    free: FloatArray  # (3, C)
    use: FloatArray  # (2, C)
    sums: FloatArray  # (SUMS,)
    link_use: FloatArray  # (R,)
    reserve: FloatArray  # (R,) what the minimums of placed flows leave
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
        reserve=form.room.copy(),
        saved_sums=np.zeros((levels, SUMS)),
        saved_node=np.zeros((levels, 5)),
        saved_path=np.zeros((levels, 2, max(1, longest))),
    )


@compiled
def end_node(node_of: IntArray, end: int) -> int:
    """The candidate at this end of a flow, or -1 while its task has none."""
    if end < 0:
        return -1 - end
    return int(node_of[end])


@compiled
def fits_now(allowed: bool, demand: FloatArray, free: FloatArray, node: int) -> bool:
    """Whether the node, allowed from the start, still has room for the demand."""
    return bool(allowed and demand[0] <= free[0, node] and demand[1] <= free[1, node] and demand[2] <= free[2, node])


@compiled
def anchor(most: float, width: float) -> float:
    """The most that a flow of this maximum could get on a path of this width."""
    return min(most, width)


@compiled
def path_cost(form: Form, state: State, flow: int, path: int, out: FloatArray) -> bool:
    """What anchoring ``flow`` on ``path`` adds to the links' sum of squares, to their sum, and what it loses of D.

    False where its minimum has no room any more.
    """
    low, worth = form.low[flow], form.worth[flow]
    room, load = np.inf, 0.0
    for i in range(form.path_first[path], form.path_first[path + 1]):
        r = form.resource[i]
        room = min(room, state.reserve[r] / form.times[i])
        load += state.link_use[r] * form.inverse[r] * form.times[i]
    if room < low:
        return False
    rate = anchor(form.high[flow], form.width[path])
    out[0] = rate * (rate * form.kappa2[path] + 2.0 * load)
    out[1] = rate * form.kappa[path]
    gain = worth - form.eta[path]
    if worth == 0.0 or form.path_first[path] == form.path_first[path + 1]:
        out[2] = 0.0
    elif gain < 0.0:
        out[2] = worth * (form.high[flow] - rate) + gain * (rate - low)
    else:
        out[2] = worth * (form.high[flow] - rate) + gain * (rate - min(rate, room))
    return True


@compiled
def place(form: Form, state: State, level: int, task: int, node: int) -> None:
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
    node = state.node_of[task]
    state.node_of[task] = -1
    state.sums[:] = state.saved_sums[level]
    for r in range(3):
        state.free[r, node] = state.saved_node[level, r]
    for r in range(2):
        state.use[r, node] = state.saved_node[level, 3 + r]


@compiled
def route(form: Form, state: State, level: int, flow: int, path: int, cost: FloatArray) -> None:
    """Puts the flow on the path; ``cost`` is what :func:`path_cost` said."""
    state.saved_sums[level] = state.sums
    state.path_of[flow] = path
    state.sums[LINK_SQUARES] += cost[0]
    state.sums[LINK_SUM] += cost[1]
    state.sums[LOST] += cost[2]
    rate = anchor(form.high[flow], form.width[path])
    first = form.path_first[path]
    for i in range(first, form.path_first[path + 1]):
        r = form.resource[i]
        state.saved_path[level, 0, i - first] = state.link_use[r]
        state.saved_path[level, 1, i - first] = state.reserve[r]
        state.link_use[r] += rate * form.times[i] * form.inverse[r]
        state.reserve[r] -= form.low[flow] * form.times[i]


@compiled
def unroute(form: Form, state: State, level: int, flow: int) -> None:
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
    """The population standard deviation behind the sums."""
    mean = total / count
    return float(np.sqrt(max(0.0, squares / count - mean * mean)))


@compiled
def anchored(form: Form, state: State) -> float:
    """Z' of the placement, once everything is placed."""
    sums, value = state.sums, state.sums[LOST]
    for r in range(2):
        value += form.weights[r] * spread(sums[NODE_SUM + r], sums[NODE_SQUARES + r], form.node_count[r])
    return float(value + form.weights[2] * spread(sums[LINK_SUM], sums[LINK_SQUARES], form.link_count))


Chosen = NDArray[np.int64]
"""One number per level: the candidate of its task, or the path of its flow."""
