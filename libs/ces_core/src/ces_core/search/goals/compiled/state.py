"""Plans under construction of a job with goals: what nodes and links carry, how long chains take, and what J is so far.

A state has several *slots*, each with a plan of its own: what is tried is tried on a copy, and nothing has to be
undone.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np

from ces_core.compiled.jit import inner
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.search.goals.compiled.view import BALANCE, BANDWIDTH, CONSTANT, TIME, WATT, GoalView

CURRENT, TRIAL, SCRATCH, CHOSEN, FIRST_KEPT = range(5)
"""Slots: the plan that is varied, a variation of it, two for choices on the way; from the last on the best plans."""
KEPT = 6
"""Number of best plans that are kept, no two with the same nodes and paths."""
CPU, CPU_SQUARES, MEMORY, MEMORY_SQUARES, LINKS, LINKS_SQUARES, WATTS, WORKS, SATISFIED, MOVES = range(10)
"""Indices of :attr:`GoalState.sums`."""
LATE = 1e6
"""What a plan that breaks a goal is worth less, so that every plan that breaks none is better."""
NARROWEST = 1e-6
"""Share of a flow's maximum below which the time of its message is not told apart."""
TIGHT = 5e-11
"""Relative: how far times may exceed deadlines; half of the model's tolerance for rounding."""


Rows = TypeVar("Rows", IntArray, FloatArray)


class GoalState(NamedTuple):
    """S slots; the other letters as in GoalView."""

    node_of: IntArray  # (S, T) candidates; -1: not placed
    path: IntArray  # (S, F) -1: none yet
    origin: IntArray  # (S, F) the candidate that the flow begins at
    rate: FloatArray  # (S, F)
    free: FloatArray  # (S, 3, C)
    use: FloatArray  # (S, 2, C)
    tasks_on: IntArray  # (S, C)
    load: FloatArray  # (S, R) of the job's rates
    reserve: FloatArray  # (S, R) of the minimums of its flows
    node_uses: IntArray  # (S, N) tasks and paths that use a node; (S, 0) where reliability does not matter
    link_uses: IntArray  # (S, R)
    chain_ms: FloatArray  # (S, K)
    sums: FloatArray  # (S, 10)
    score: FloatArray  # (S,) minus infinity: no complete plan
    random: IntArray  # (1,)
    stalled: IntArray  # (1,) variations since the last improvement; -1: the search has not begun


def new_goal_state(goal: GoalView, random: int) -> GoalState:
    """With nothing placed in any slot."""
    slots, tasks, flows = FIRST_KEPT + KEPT, len(goal.demand), len(goal.low)
    resources = len(goal.residual)
    return GoalState(
        node_of=np.full((slots, tasks), -1, dtype=np.int64),
        path=np.full((slots, flows), -1, dtype=np.int64),
        origin=np.zeros((slots, flows), dtype=np.int64),
        rate=np.zeros((slots, flows)),
        free=np.zeros((slots, *goal.free.shape)),
        use=np.zeros((slots, *goal.use.shape)),
        tasks_on=np.zeros((slots, len(goal.nodes)), dtype=np.int64),
        load=np.zeros((slots, resources)),
        reserve=np.zeros((slots, resources)),
        node_uses=np.zeros((slots, len(goal.log_node)), dtype=np.int64),
        link_uses=np.zeros((slots, resources), dtype=np.int64),
        chain_ms=np.zeros((slots, len(goal.chain_fixed))),
        sums=np.zeros((slots, MOVES + 1)),
        score=np.full(slots, -math.inf),
        random=np.full(1, random, dtype=np.int64),
        stalled=np.full(1, -1, dtype=np.int64),
    )


@inner
def clear(goal: GoalView, state: GoalState, s: int) -> None:
    """Takes everything off the slot."""
    state.node_of[s] = -1
    state.path[s] = -1
    state.free[s] = goal.free
    state.use[s] = goal.use
    state.tasks_on[s] = 0
    state.load[s] = 0.0
    state.reserve[s] = 0.0
    state.node_uses[s] = 0
    state.link_uses[s] = 0
    state.chain_ms[s] = goal.chain_fixed
    for row in range(2):
        state.sums[s, CPU + 2 * row] = goal.node_sum[row]
        state.sums[s, CPU_SQUARES + 2 * row] = goal.node_squares[row]
    state.sums[s, LINKS] = goal.link_sums[1]
    state.sums[s, LINKS_SQUARES] = goal.link_sums[2]
    state.sums[s, WATTS:] = 0.0


@inner
def duplicate(state: GoalState, s: int, to: int) -> None:
    """Makes slot ``to`` a copy of slot ``s``."""
    _copy(state.node_of, s, to)
    _copy(state.path, s, to)
    _copy(state.origin, s, to)
    _copy(state.rate, s, to)
    for row in range(3):
        for n in range(state.free.shape[2]):
            state.free[to, row, n] = state.free[s, row, n]
    for row in range(2):
        for n in range(state.use.shape[2]):
            state.use[to, row, n] = state.use[s, row, n]
    _copy(state.tasks_on, s, to)
    _copy(state.load, s, to)
    _copy(state.reserve, s, to)
    _copy(state.node_uses, s, to)
    _copy(state.link_uses, s, to)
    _copy(state.chain_ms, s, to)
    _copy(state.sums, s, to)
    state.score[to] = state.score[s]


@inner
def _copy(rows: Rows, s: int, to: int) -> None:
    for i in range(rows.shape[1]):
        rows[to, i] = rows[s, i]


@inner
def _watts(goal: GoalView, state: GoalState, s: int, n: int) -> float:
    """Change of a node's power by the tasks on it."""
    if state.tasks_on[s, n] == 0:
        return 0.0
    now = 0.0 if goal.sleeping[n] else _power(goal, n, 0.0)
    return _power(goal, n, state.use[s, 0, n] - goal.use[0, n]) - now


@inner
def _power(goal: GoalView, n: int, more: float) -> float:
    at = 10.0 * min(max(goal.before[n] + more, 0.0), 1.0)
    k = min(int(at), 9)
    watts: float = goal.watts[n, k] + (goal.watts[n, k + 1] - goal.watts[n, k]) * (at - k)
    return watts


@inner
def put(goal: GoalView, state: GoalState, s: int, t: int, n: int, sign: int) -> None:
    """Puts a task on a node, or with ``sign`` -1 takes it off."""
    sums = state.sums
    sums[s, WATTS] -= _watts(goal, state, s, n)
    state.tasks_on[s, n] += sign
    for row in range(3):
        state.free[s, row, n] -= sign * goal.demand[t, row]
    for row in range(2):
        more = sign * goal.demand[t, row] * goal.inverse[row, n]
        sums[s, CPU + 2 * row] += more
        sums[s, CPU_SQUARES + 2 * row] += more * (2.0 * state.use[s, row, n] + more)
        state.use[s, row, n] += more
    sums[s, WATTS] += _watts(goal, state, s, n)
    sums[s, MOVES] += sign * goal.moved[t, n]
    for k in range(state.chain_ms.shape[1]):
        if goal.visits[t, k] > 0.0:
            state.chain_ms[s, k] += sign * goal.visits[t, k] * goal.response[t, n]
    _use_node(goal, state, s, goal.nodes[n], sign)
    state.node_of[s, t] = n if sign > 0 else -1


@inner
def _use_node(goal: GoalView, state: GoalState, s: int, n: int, sign: int) -> None:
    if len(goal.log_node) == 0:
        return
    before = state.node_uses[s, n]
    state.node_uses[s, n] = before + sign
    if before == 0:
        state.sums[s, WORKS] += goal.log_node[n]
    elif before + sign == 0:
        state.sums[s, WORKS] -= goal.log_node[n]


@inner
def carry(goal: GoalView, state: GoalState, s: int, f: int, origin: int, q: int, rate: float, sign: int) -> None:
    """Leads a flow over path ``q`` from candidate ``origin``, or with ``sign`` -1 takes it off the links."""
    sums, delay = state.sums, 0.0
    first, last = goal.path_first[q], goal.path_first[q + 1]
    tracked = len(goal.log_node) > 0
    if tracked:
        _use_node(goal, state, s, goal.nodes[origin], sign)
    for i in range(first, last):
        r, times = goal.path_resource[i], goal.path_times[i]
        more = sign * times * rate
        inverse = goal.link_inverse[r]
        step = more * inverse
        sums[s, LINKS] += step
        sums[s, LINKS_SQUARES] += step * (2.0 * (goal.link_use[r] + state.load[s, r] * inverse) + step)
        sums[s, WATTS] += more * goal.link_w[r]
        state.load[s, r] += more
        state.reserve[s, r] += sign * times * goal.low[f]
        delay += goal.delay[r]
        if tracked and goal.link_end[r] >= 0:
            before = state.link_uses[s, r]
            state.link_uses[s, r] = before + sign
            if before == 0:
                sums[s, WORKS] += goal.log_link[r]
            elif before + sign == 0:
                sums[s, WORKS] -= goal.log_link[r]
            _use_node(goal, state, s, goal.link_end[r], sign)
    if last > first:
        ms = delay + message_ms(goal, f, rate)
        for k in range(state.chain_ms.shape[1]):
            if goal.passes[f, k] > 0.0:
                state.chain_ms[s, k] += sign * goal.passes[f, k] * ms
    sums[s, SATISFIED] += sign * satisfaction(goal, f, rate, last > first)
    state.path[s, f] = q if sign > 0 else -1
    state.rate[s, f] = rate
    state.origin[s, f] = origin


@inner
def message_ms(goal: GoalView, f: int, rate: float) -> float:
    if goal.message[f] == 0.0:
        return 0.0
    ms: float = goal.message[f] / max(rate, NARROWEST * goal.high[f])
    return ms


@inner
def satisfaction(goal: GoalView, f: int, rate: float, moves: bool) -> float:
    span = goal.high[f] - goal.low[f]
    if not moves or span <= 0.0:
        return 1.0
    share: float = (rate - goal.low[f]) / span
    return share


@inner
def value(goal: GoalView, state: GoalState, s: int) -> float:
    """J of what is placed in the slot, and far below where a goal is broken: lower, the more it is."""
    aims, sums = goal.aims, state.sums
    spread = 0.0
    for row in range(2):
        spread += goal.weights[row] * deviation(sums[s, 2 * row], sums[s, 2 * row + 1], goal.node_count[row])
    spread += goal.weights[2] * deviation(sums[s, LINKS], sums[s, LINKS_SQUARES], goal.link_sums[0])
    total: float = aims[CONSTANT] + aims[BALANCE] * (1.0 - spread) + aims[BANDWIDTH] * sums[s, SATISFIED]
    total -= aims[WATT] * sums[s, WATTS] + sums[s, MOVES]
    broken = 0.0
    if sums[s, WORKS] < goal.log_least:
        broken += goal.log_least - sums[s, WORKS]
    for g in range(len(goal.deadline)):
        longest = 0.0
        for k in range(goal.class_first[g], goal.class_first[g + 1]):
            longest = max(longest, state.chain_ms[s, k])
        share = longest / goal.deadline[g]
        if not goal.hard[g]:
            total += aims[TIME] * max(0.0, 1.0 - share)
        elif share > 1.0 + TIGHT:
            broken += share - 1.0
    return total - LATE * (1.0 + broken) if broken > 0.0 else total


@inner
def deviation(total: float, squares: float, count: float) -> float:
    mean = total / count
    return math.sqrt(max(squares / count - mean * mean, 0.0))
