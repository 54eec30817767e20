"""Ruin and recreate: remove a few tasks from their nodes, and let a learned policy put them back.

Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, "Record breaking optimization results using the ruin and recreate
principle", Journal of Computational Physics 159 (2000). The search's own neighbourhoods
(:mod:`ces_core.search.neighbourhoods`) are small trees that order nodes by balance. Here each task is placed only once,
on a node drawn by a policy that also considers the links its flows would load. This tries many more neighbourhoods in
the same time, and may pass through a worse plan on the way to a better one (Metropolis's rule). The policy draws among
the nodes that are best for the balance, or for balance and nearness (:mod:`ces_core.learned.start.nearness`).
"""

from __future__ import annotations

import math

import numpy as np

from ces_core.compiled.jit import compiled, inner, lent
from ces_core.learned.start.nearness import add_distances, hop_cost
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.fill import FillWork
from ces_core.placement.state import State, carry, mark_affected, overload_of, put
from ces_core.placement.step import holds, step_to, unwind
from ces_core.placement.trial import ROUGH, SETTLING, accept, outright, score_state
from ces_core.placement.view import ProblemView
from ces_core.search.annealing import SearchMemory, keep, uniform
from ces_core.search.neighbourhoods import choose
from ces_core.search.tree import Tree
from ces_core.search.workspace import Workspace

LINKS, LOST, HOPS, OPEN, NOISE, TEMPERATURE, BREADTH, MORE, NEIGHBOUR = range(9)
"""The index of each of :data:`ces_core.learned.start.weights.HABITS` in the weights."""
UNIT = 0.01
"""The unit of hops, noise and temperature: this part of the composite, divided by the number of nodes, because a single
task affects the balance less the more nodes there are."""
MOST = 6
"""At most this many tasks are removed together."""
NO_ROOM = 1.0
"""The policy's cost of a flow without a path, and the most that any flow can cost."""


@compiled
def ruin_and_recreate(workspace: Workspace, weights: FloatArray, hops: FloatArray, limit: int) -> int:
    """Improve the workspace's state, which must fit, until ``limit`` tasks or slightly more have been placed again.
    Returns their number; the walk keeps the best plan, and the state may hold another. ``hops``: between candidates,
    where the policy draws among near nodes; NOWHERE: where balance alone decides among which."""
    view, work, state, walk, tree = workspace.problem, workspace.work, workspace.state, workspace.walk, workspace.tree
    return _run(view, work, state, walk, tree, weights, hops, limit)


@inner
def _run(
    view: ProblemView,
    work: FillWork,
    state: State,
    walk: SearchMemory,
    tree: Tree,
    weights: FloatArray,
    hops: FloatArray,
    limit: int,
) -> int:
    view, work, state, walk, tree = lent(view), lent(work), lent(state), lent(walk), lent(tree)
    tasks, candidates = view.fits.shape
    breadth = max(1, min(int(weights[BREADTH]), candidates))
    listed, values = np.empty(breadth, dtype=np.int64), np.empty(breadth)
    away = np.zeros(candidates)
    a_hop = hop_cost(view, state) if len(hops) > 0 else 0.0
    temperature = _unit(view) * max(weights[TEMPERATURE], 0.0)
    tree.is_open[:] = 0
    tree.placement[:] = state.node_of
    state.trial_path[:] = state.path
    state.guess[:] = state.rates
    seen = 0
    while seen < limit:
        worth = state.score[0] + temperature * math.log(max(uniform(walk.random), 1e-12))
        count = 1
        while count < min(tasks, MOST) and uniform(walk.random) < weights[MORE]:
            count += 1
        choose(view, walk, tree, count, weights[NEIGHBOUR])
        flows = mark_affected(view, state, tree.order, count)
        for i in range(flows):
            f = state.affected[i]
            carry(view, state, state.path[f], -state.rates[f], -view.low[f])
        for i in range(count):
            put(view, state, tree.order[i], state.node_of[tree.order[i]], -1.0)
        tree.carried[0] = 0
        level, moved = 0, False
        while level < count:
            task = tree.order[level]
            seen += 1
            if a_hop > 0.0:
                away[:] = 0.0
                add_distances(view, state, tree, task, hops, a_hop, weights[OPEN], away)
            node = _draw(view, state, walk, tree, weights, task, level == 0, listed, values, away, a_hop > 0.0)
            if node < 0 or not step_to(view, state, tree, level, node):
                break
            moved = moved or node != state.node_of[task]
            level += 1
        score = -math.inf
        if level == count and moved:
            score = _judge(view, work, state, tree, flows, worth)
        unwind(view, state, tree, level, 0)
        tree.is_open[:] = 0
        if score > worth:
            accept(view, state, tree.placement, score)
            state.guess[:] = state.rates
            if score > walk.best_score[0]:
                keep(state, walk)
            continue
        for i in range(count):
            task = tree.order[i]
            put(view, state, task, state.node_of[task], 1.0)
            tree.placement[task] = state.node_of[task]
        for i in range(flows):
            f = state.affected[i]
            carry(view, state, state.path[f], state.rates[f], view.low[f])
            state.trial_path[f] = state.path[f]
            state.guess[f] = state.rates[f]
    return seen


def heat_of(view: ProblemView, temperature: float) -> float:
    """The weight that stands for a temperature in units of the composite."""
    return float(temperature * view.node_count[0] / UNIT)


@inner
def _unit(view: ProblemView) -> float:
    unit: float = UNIT / view.node_count[0]
    return unit


@inner
def _judge(view: ProblemView, work: FillWork, state: State, tree: Tree, flows: int, worth: float) -> float:
    """The score with all tasks placed, or some value not above ``worth``."""
    overload = overload_of(state, tree.placement)
    score, settled = outright(view, state, overload, flows)
    if settled:
        state.trial_rates[:] = view.high
        state.fits[1] = overload == 0.0
    elif score + SETTLING > worth:
        score = score_state(view, work, state, overload, state.trial_path, state.trial_rates, ROUGH)
    else:
        return -math.inf
    return score if state.fits[1] else -math.inf


@inner
def _draw(
    view: ProblemView,
    state: State,
    walk: SearchMemory,
    tree: Tree,
    weights: FloatArray,
    task: int,
    elsewhere: bool,
    listed: IntArray,
    values: FloatArray,
    away: FloatArray,
    hasty: bool,
) -> int:
    """The node the policy draws for a task, among those best for the balance where ``away`` counts as a cost, too; -1
    if there is none. ``elsewhere``: not its old node. ``hasty``: a node is given up once another is ahead, though a
    later flow may even relieve the links' spread. Costs are in units of the composite, linearised around the state."""
    candidates, flows = view.fits.shape[1], len(view.low)
    number = _calmest(view, state, task, elsewhere, listed, values, away)
    mean = state.link_sums[0] / view.link_count
    spread = math.sqrt(max(state.link_sums[1] / view.link_count - mean * mean, 1e-12))
    links = 0.5 * weights[LINKS] * view.weights[2] / (2.0 * spread * view.link_count)
    unit = _unit(view)
    lost, hops, noise = 0.5 * weights[LOST] / max(flows, 1), unit * weights[HOPS], unit * max(weights[NOISE], 0.0)
    best, most = -1, -math.inf
    for i in range(number):
        # The largest of values with Gumbel noise is a draw by their softmax.
        luck = -math.log(max(-math.log(max(uniform(walk.random), 1e-12)), 1e-12))
        node, value = listed[i], values[i] + away[listed[i]] + noise * luck
        for k in range(view.flows_first[task], view.flows_first[task + 1]):
            f = view.flows_of[k]
            src, dst = view.flow_src[f], view.flow_dst[f]
            other = dst if src == task else src
            is_open = other >= 0 and tree.is_open[other] == 1
            if is_open and weights[OPEN] == 0.0:
                continue
            # An open task may well come back to where it was.
            there = (state.node_of[other] if is_open else tree.placement[other]) if other >= 0 else -1 - other
            if there == node or other == task:
                continue
            pair = node * candidates + there if src == task else there * candidates + node
            price = _price(view, state, f, pair, mean, links, lost, hops)
            value -= weights[OPEN] * price if is_open else price
            if hasty and value <= most:
                break
        if value > most:
            best, most = node, value
    return best


@inner
def _calmest(
    view: ProblemView,
    state: State,
    task: int,
    elsewhere: bool,
    listed: IntArray,
    values: FloatArray,
    away: FloatArray,
) -> int:
    """List the nodes where what the task costs the balance and ``away`` are least together, best first. Returns their
    number."""
    slope = np.empty(2)
    mean = np.empty(2)
    for row in range(2):
        mean[row] = state.node_sums[row, 0] / view.node_count[row]
        variance = max(state.node_sums[row, 1] / view.node_count[row] - mean[row] * mean[row], 1e-12)
        slope[row] = 0.5 * view.weights[row] / (2.0 * view.node_count[row] * math.sqrt(variance))
    number, breadth = 0, len(listed)
    for n in range(view.fits.shape[1]):
        if not view.fits[task, n] or (elsewhere and n == state.node_of[task]):
            continue
        value = -away[n]
        for row in range(2):
            more = view.demand[task, row] * view.inverse[row, n]
            value -= slope[row] * more * (2.0 * (state.use[row, n] - mean[row]) + more)
        if (number == breadth and values[breadth - 1] >= value) or not holds(view, state, task, n):
            continue
        number = min(number + 1, breadth)
        at = number - 1
        while at > 0 and values[at - 1] < value:
            values[at], listed[at] = values[at - 1], listed[at - 1]
            at -= 1
        values[at], listed[at] = value, n
    return number


@inner
def _price(
    view: ProblemView, state: State, f: int, pair: int, mean: float, links: float, lost: float, hops: float
) -> float:
    """The flow's cost on its cheapest path: link spread, lost satisfaction and hops."""
    high, span = view.high[f], view.high[f] - view.low[f]
    least = NO_ROOM
    for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
        residual, price = math.inf, 0.0
        first, last = view.path_first[q], view.path_first[q + 1]
        for i in range(first, last):
            r = view.path_resource[i]
            residual = min(residual, state.spare[r] / view.path_times[i])
            more = high * view.link_inverse[r]
            price += more * (2.0 * (state.link_use[r] - mean) + more)
        price = links * price + hops * (last - first)
        if residual < high:
            price += lost * (high - residual) / span if span > 0.0 else NO_ROOM
        least = min(least, price)
    return least
