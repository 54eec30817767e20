"""Ruin and recreate for jobs with goals (Schrimpf and others, Journal of Computational Physics 159, 2000): a few units,
mostly ones with flows between them, leave their nodes and are put back one by one where J is highest.

A little noise on J makes the choices differ, and a variation may be somewhat worse than the plan it came from
(Metropolis's rule). What has no place at its turn stays open, and leaves its node first the next time.
"""

from __future__ import annotations

import math

import numpy as np

from ces_core.compiled.jit import compiled, inner, lent
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.search.annealing import uniform
from ces_core.search.goals.compiled.rates import route, settle
from ces_core.search.goals.compiled.state import (
    CHOSEN,
    CURRENT,
    FIRST_KEPT,
    KEPT,
    LATE,
    SCRATCH,
    TRIAL,
    WORKS,
    GoalState,
    carry,
    clear,
    duplicate,
    message_ms,
    put,
    value,
)
from ces_core.search.goals.compiled.view import BANDWIDTH, GoalView

MOST = 5
"""Units that leave their nodes together, at most; more where some have no place."""
ANOTHER = 0.55
"""Probability of each after the first."""
NEIGHBOUR = 0.8
"""Probability that it is one with a flow to a unit that leaves."""
LOUDEST, QUIETEST = 0.2, 1e-5
"""The noise of a variation, in J, is drawn between these, evenly by its logarithm."""
CAREFUL = 0.5
"""Probability of a variation that prices what hard goals limit, so that no node is taken that leaves too little for the
units that are still to be placed."""
LEAST_LEAN, MOST_LEAN = 0.3, 30.0
"""That price lies between these, evenly by its logarithm: in J, for a halving of reliability, roughly."""
LEAST_HASTE, MOST_HASTE = 0.01, 1.0
"""Likewise for the whole time until a hard deadline."""
PATIENCE = 40
"""Variations for each unit without improvement, after which it goes on from the best plan."""
SWEEPS = 6
"""Maximum sweeps over all flows, with other paths, of a plan that may be among the best."""
GAIN = 1e-7
"""Less than this is no improvement worth another sweep."""
UNPLACED = 1e9
"""What a unit that has no place costs."""


@compiled
def improve(goal: GoalView, state: GoalState, heat: float, limit: int) -> int:
    """Varies the current plan until ``limit`` nodes, or slightly more, were tried for a unit; keeps the best plans.
    ``heat``: how much worse a variation may become, in J. Returns the number of nodes tried."""
    goal, state = lent(goal), lent(state)
    units = len(goal.fits)
    leaving = np.empty(units, dtype=np.int64)
    away = np.zeros(units, dtype=np.bool_)
    promises, luck = np.empty(len(goal.nodes)), np.empty(len(goal.nodes))
    chain_ms = np.empty(len(goal.chain_fixed))
    seen = 0
    if state.stalled[0] < 0:
        _refresh(goal, state, CURRENT)
        state.stalled[0] = 0
    while seen < limit:
        duplicate(state, CURRENT, TRIAL)
        count = _choose(goal, state, leaving, away)
        noise = QUIETEST * (LOUDEST / QUIETEST) ** uniform(state.random)
        for i in range(count):
            _take_off(goal, state, TRIAL, leaving[i])
            away[leaving[i]] = False
        lean = _price(state, LEAST_LEAN, MOST_LEAN) if len(goal.log_node) > 0 else 0.0
        haste = _price(state, LEAST_HASTE, MOST_HASTE) if goal.hard.any() else 0.0
        for i in range(count):
            seen += _put_back(goal, state, leaving[i], (noise, lean, haste), promises, luck, chain_ms)
        settle(goal, state, TRIAL, False)
        worth = _worth(goal, state, TRIAL)
        state.score[TRIAL] = worth
        state.stalled[0] += 1
        before = state.score[CURRENT]
        if worth > before + _unit(before) * heat * math.log(max(uniform(state.random), 1e-12)):
            _refresh(goal, state, TRIAL)
            duplicate(state, TRIAL, CURRENT)
        _keep(goal, state)
        if state.stalled[0] > PATIENCE * units:
            _return_to_best(state)
    return seen


@inner
def _worth(goal: GoalView, state: GoalState, s: int) -> float:
    """J, less what open units cost."""
    worth = value(goal, state, s)
    for u in range(len(goal.fits)):
        if state.node_of[s, goal.unit_tasks[goal.unit_first[u]]] < 0:
            worth -= UNPLACED
    return worth


@inner
def _choose(goal: GoalView, state: GoalState, leaving: IntArray, away: BoolArray) -> int:
    """Lists units that leave their nodes, in a random order, and marks them. Returns their number."""
    units, count = len(goal.fits), 0
    for u in range(units):
        if state.node_of[CURRENT, goal.unit_tasks[goal.unit_first[u]]] < 0:
            leaving[count] = u
            away[u] = True
            count += 1
    most = min(units, count + MOST)
    if count == 0 or count < most:
        u = int(uniform(state.random) * units)
        if not away[u]:
            leaving[count] = u
            away[u] = True
            count += 1
    while count < most and uniform(state.random) < ANOTHER:
        u = int(uniform(state.random) * units)
        if uniform(state.random) < NEIGHBOUR:
            near = leaving[int(uniform(state.random) * count)]
            first, last = goal.unit_flows_first[near], goal.unit_flows_first[near + 1]
            if last > first:
                f = goal.unit_flows[first + int(uniform(state.random) * (last - first))]
                src, dst = goal.flow_src[f], goal.flow_dst[f]
                if src >= 0 and goal.unit_of[src] != near:
                    u = goal.unit_of[src]
                elif dst >= 0:
                    u = goal.unit_of[dst]
        if not away[u]:
            leaving[count] = u
            away[u] = True
            count += 1
    for i in range(count - 1, 0, -1):
        j = int(uniform(state.random) * (i + 1))
        leaving[i], leaving[j] = leaving[j], leaving[i]
    return count


@inner
def _take_off(goal: GoalView, state: GoalState, s: int, u: int) -> None:
    for i in range(goal.unit_flows_first[u], goal.unit_flows_first[u + 1]):
        f = goal.unit_flows[i]
        if state.path[s, f] >= 0:
            carry(goal, state, s, f, state.origin[s, f], state.path[s, f], state.rate[s, f], -1)
    for i in range(goal.unit_first[u], goal.unit_first[u + 1]):
        t = goal.unit_tasks[i]
        if state.node_of[s, t] >= 0:
            put(goal, state, s, t, state.node_of[s, t], -1)


@inner
def _price(state: GoalState, least: float, most: float) -> float:
    if uniform(state.random) > CAREFUL:
        return 0.0
    price: float = least * (most / least) ** uniform(state.random)
    return price


@inner
def _unit(worth: float) -> float:
    """What noise is measured in: J, or how far goals are broken while they are."""
    return LATE if worth < -0.5 * LATE else 1.0


@inner
def _put_back(
    goal: GoalView,
    state: GoalState,
    u: int,
    taste: tuple[float, float, float],
    promises: FloatArray,
    luck: FloatArray,
    chain_ms: FloatArray,
) -> int:
    """Puts a unit where J is highest, by ``taste``: noise and the prices of hard goals; in the slot TRIAL, and nowhere
    if it has no place. Nodes are looked at by what they promise. Returns the number of nodes tried, at least 1."""
    tried, best = 0, -math.inf
    for n in range(len(goal.nodes)):
        promises[n] = -math.inf
        if goal.fits[u, n] and _holds(goal, state, u, n):
            tried += 1
            # The largest of values with Gumbel noise is a draw by their softmax.
            luck[n] = -taste[0] * math.log(max(-math.log(max(uniform(state.random), 1e-12)), 1e-12))
            promises[n] = _promise(goal, state, u, n, taste, luck[n], chain_ms)
    while True:
        n = int(np.argmax(promises))
        if promises[n] <= best:
            break
        promises[n] = -math.inf
        duplicate(state, TRIAL, SCRATCH)
        if _try(goal, state, SCRATCH, u, n):
            worth = _tasted(goal, state, SCRATCH, taste, luck[n])
            if worth > best:
                best = worth
                duplicate(state, SCRATCH, CHOSEN)
    if best > -math.inf:
        duplicate(state, CHOSEN, TRIAL)
    return max(tried, 1)


@inner
def _tasted(goal: GoalView, state: GoalState, s: int, taste: tuple[float, float, float], luck: float) -> float:
    """J with noise, less the prices of what hard goals limit."""
    worth = value(goal, state, s)
    worth += luck * _unit(worth)
    if taste[1] > 0.0:
        worth += taste[1] * state.sums[s, WORKS]
    if taste[2] > 0.0:
        for g in range(len(goal.deadline)):
            longest = 0.0
            for k in range(goal.class_first[g], goal.class_first[g + 1]):
                longest = max(longest, state.chain_ms[s, k])
            if goal.hard[g]:
                worth -= taste[2] * longest / goal.deadline[g]
    return worth


@inner
def _promise(
    goal: GoalView,
    state: GoalState,
    u: int,
    n: int,
    taste: tuple[float, float, float],
    luck: float,
    chain_ms: FloatArray,
) -> float:
    """Roughly the most that the unit can be worth on the node: its flows fully satisfied, by the least delay."""
    for k in range(len(chain_ms)):
        chain_ms[k] = state.chain_ms[TRIAL, k]
    for i in range(goal.unit_first[u], goal.unit_first[u + 1]):
        put(goal, state, TRIAL, goal.unit_tasks[i], n, 1)
    gain = 0.0
    for i in range(goal.unit_flows_first[u], goal.unit_flows_first[u + 1]):
        f = goal.unit_flows[i]
        src, dst = goal.flow_src[f], goal.flow_dst[f]
        if (src >= 0 and state.node_of[TRIAL, src] < 0) or (dst >= 0 and state.node_of[TRIAL, dst] < 0):
            continue
        gain += goal.aims[BANDWIDTH]
        end = state.node_of[TRIAL, dst] if dst >= 0 else -1 - dst
        ms, least = 0.0, math.inf
        if src >= 0:
            least = 0.0 if state.node_of[TRIAL, src] == end else goal.near[state.node_of[TRIAL, src], end]
        for j in range(goal.sources_first[f], goal.sources_first[f + 1]):
            least = min(least, goal.near[goal.sources[j], end])
        if least > 0.0:
            ms = least + message_ms(goal, f, goal.high[f])
        for k in range(len(chain_ms)):
            state.chain_ms[TRIAL, k] += goal.passes[f, k] * ms
    worth = gain + _tasted(goal, state, TRIAL, taste, luck)
    for i in range(goal.unit_first[u], goal.unit_first[u + 1]):
        put(goal, state, TRIAL, goal.unit_tasks[i], n, -1)
    for k in range(len(chain_ms)):
        state.chain_ms[TRIAL, k] = chain_ms[k]
    return worth


@inner
def _holds(goal: GoalView, state: GoalState, u: int, n: int) -> bool:
    for row in range(3):
        asked = 0.0
        for i in range(goal.unit_first[u], goal.unit_first[u + 1]):
            asked += goal.demand[goal.unit_tasks[i], row]
        if asked > 0.0 and asked > state.free[TRIAL, row, n]:
            return False
    return True


@inner
def _try(goal: GoalView, state: GoalState, s: int, u: int, n: int) -> bool:
    """Puts the unit on the node and leads its flows; False where one does not fit."""
    for i in range(goal.unit_first[u], goal.unit_first[u + 1]):
        put(goal, state, s, goal.unit_tasks[i], n, 1)
    for i in range(goal.unit_flows_first[u], goal.unit_flows_first[u + 1]):
        f = goal.unit_flows[i]
        src, dst = goal.flow_src[f], goal.flow_dst[f]
        if (src >= 0 and state.node_of[s, src] < 0) or (dst >= 0 and state.node_of[s, dst] < 0):
            continue
        if state.path[s, f] < 0 and not route(goal, state, s, f):
            return False
    return True


@inner
def _refresh(goal: GoalView, state: GoalState, s: int) -> None:
    """Works all sums of the slot out again, without the rounding errors of many small steps."""
    node_of, path, origin = state.node_of[s].copy(), state.path[s].copy(), state.origin[s].copy()
    rate = state.rate[s].copy()
    clear(goal, state, s)
    for t in range(len(node_of)):
        if node_of[t] >= 0:
            put(goal, state, s, t, node_of[t], 1)
    for f in range(len(path)):
        if path[f] >= 0:
            carry(goal, state, s, f, origin[f], path[f], rate[f], 1)


@inner
def _keep(goal: GoalView, state: GoalState) -> None:
    """Keeps the plan of the slot TRIAL if it is complete and among the best, once its rates and paths have settled."""
    worst, most = FIRST_KEPT, -math.inf
    for s in range(FIRST_KEPT, FIRST_KEPT + KEPT):
        most = max(most, state.score[s])
        if state.score[s] < state.score[worst]:
            worst = s
    worth = state.score[TRIAL]
    # A plan that breaks a goal is kept only for want of one that breaks none.
    if worth < -0.5 * UNPLACED or worth <= state.score[worst] or (worth < -0.5 * LATE and worth <= most):
        return
    for s in range(FIRST_KEPT, FIRST_KEPT + KEPT):
        if worth <= state.score[s] + GAIN and _same(state, TRIAL, s):
            return
    for _ in range(SWEEPS):
        duplicate(state, TRIAL, SCRATCH)
        settle(goal, state, SCRATCH, True)
        _refresh(goal, state, SCRATCH)
        found = value(goal, state, SCRATCH)
        if found <= worth:
            break
        gain = found - worth
        worth = found
        state.score[SCRATCH] = worth
        duplicate(state, SCRATCH, TRIAL)
        if gain < GAIN:
            break
    at = worst
    for s in range(FIRST_KEPT, FIRST_KEPT + KEPT):
        if _same(state, TRIAL, s):
            at = s
    if worth > state.score[at]:
        _refresh(goal, state, TRIAL)
        state.score[TRIAL] = value(goal, state, TRIAL)
        duplicate(state, TRIAL, at)
    if worth > most + GAIN:
        state.stalled[0] = 0
        duplicate(state, TRIAL, CURRENT)


@inner
def _same(state: GoalState, s: int, other: int) -> bool:
    same = True
    for t in range(state.node_of.shape[1]):
        same = same and state.node_of[s, t] == state.node_of[other, t]
    for f in range(state.path.shape[1]):
        same = same and state.path[s, f] == state.path[other, f]
    return same


@inner
def _return_to_best(state: GoalState) -> None:
    best = FIRST_KEPT
    for s in range(FIRST_KEPT, FIRST_KEPT + KEPT):
        if state.score[s] > state.score[best]:
            best = s
    if state.score[best] > -math.inf:
        duplicate(state, best, CURRENT)
    state.stalled[0] = 0
