"""Improves a plan: a few tasks at a time are taken off their nodes, and a learned policy puts them back.

Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, "Record breaking optimization results using the ruin and recreate
principle", Journal of Computational Physics 159 (2000). Where the search's own neighbourhoods
(:mod:`ces_core.kernels.improve`) are small trees that order nodes by their balance, here each task is placed but once,
on the node that a policy draws, which also reckons with what the task's flows would do to the links. Many more
neighbourhoods are tried in the same time, and a worse plan may be the way to a better one (Metropolis's rule).
"""

from __future__ import annotations

import math

import numpy as np

from ces_core.kernels.anneal import Walk, keep, uniform
from ces_core.kernels.compact import Compact
from ces_core.kernels.desk import Desk
from ces_core.kernels.fill import FillWork
from ces_core.kernels.jit import compiled, inner
from ces_core.kernels.lending import lent
from ces_core.kernels.rebuild import Tree
from ces_core.kernels.state import ROUGH, SETTLING, State, _affected, _carry, _overload, _put, _score, accept, outright
from ces_core.kernels.step import _holds, _step, _step_back
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

LINKS, LOST, HOPS, OPEN, NOISE, HEAT, BREADTH, MORE, NEIGHBOUR = range(9)
"""Where in the weights each of :data:`ces_core.proposals.weights.HABITS` is."""
UNIT = 0.01
"""Of the composite, over the number of nodes: what hops, noise and heat are measured in, since a task weighs the less
in the nodes' balance the more nodes there are."""
MOST = 6
"""Tasks that are taken off together, at most."""
NO_ROOM = 1.0
"""What a flow without a way costs the policy: more than all else."""


@compiled
def remake(desk: Desk, weights: FloatArray, limit: int) -> int:
    """Goes on from the desk's state, which must fit, until ``limit`` tasks have been placed anew, or some more. Returns
    how many; the walk remembers the best, and the state may be another."""
    return _remake(desk.problem, desk.work, desk.state, desk.walk, desk.tree, weights, limit)


@inner
def _remake(
    view: Compact, work: FillWork, state: State, walk: Walk, tree: Tree, weights: FloatArray, limit: int
) -> int:
    view, work, state, walk, tree = lent(view), lent(work), lent(state), lent(walk), lent(tree)
    tasks, candidates = view.fits.shape
    breadth = max(1, min(int(weights[BREADTH]), candidates))
    listed, values = np.empty(breadth, dtype=np.int64), np.empty(breadth)
    heat = _unit(view) * max(weights[HEAT], 0.0)
    tree.is_open[:] = 0
    tree.placement[:] = state.node_of
    state.trial_path[:] = state.path
    state.guess[:] = state.rates
    seen = 0
    while seen < limit:
        worth = state.score[0] + heat * math.log(max(uniform(walk.random), 1e-12))
        count = 1
        while count < min(tasks, MOST) and uniform(walk.random) < weights[MORE]:
            count += 1
        _choose(view, walk, tree, count, weights[NEIGHBOUR])
        flows = _affected(view, state, tree.order, count)
        for i in range(flows):
            f = state.affected[i]
            _carry(view, state, state.path[f], -state.rates[f], -view.low[f])
        for i in range(count):
            _put(view, state, tree.order[i], state.node_of[tree.order[i]], -1.0)
        tree.carried[0] = 0
        level, moved = 0, False
        while level < count:
            task = tree.order[level]
            seen += 1
            node = _draw(view, state, walk, tree, weights, task, level == 0, listed, values)
            if node < 0 or not _step(view, state, tree, level, node):
                break
            moved = moved or node != state.node_of[task]
            level += 1
        score = -math.inf
        if level == count and moved:
            score = _judge(view, work, state, tree, flows, worth)
        for at in range(level - 1, -1, -1):
            _step_back(view, state, tree, at)
        tree.is_open[:] = 0
        if score > worth:
            accept(view, state, tree.placement, score)
            state.guess[:] = state.rates
            if score > walk.best_score[0]:
                keep(state, walk)
            continue
        for i in range(count):
            task = tree.order[i]
            _put(view, state, task, state.node_of[task], 1.0)
            tree.placement[task] = state.node_of[task]
        for i in range(flows):
            f = state.affected[i]
            _carry(view, state, state.path[f], state.rates[f], view.low[f])
            state.trial_path[f] = state.path[f]
            state.guess[f] = state.rates[f]
    return seen


@inner
def _unit(view: Compact) -> float:
    unit: float = UNIT / view.node_count[0]
    return unit


@inner
def _judge(view: Compact, work: FillWork, state: State, tree: Tree, flows: int, worth: float) -> float:
    """The score with all tasks placed, or something that is not above ``worth``."""
    overload = _overload(state, tree.placement)
    score, settled = outright(view, state, overload, flows)
    if settled:
        state.trial_rates[:] = view.high
        state.fits[1] = overload == 0.0
    elif score + SETTLING > worth:
        score = _score(view, work, state, overload, state.trial_path, state.trial_rates, ROUGH)
    else:
        return -math.inf
    return score if state.fits[1] else -math.inf


@inner
def _choose(view: Compact, walk: Walk, tree: Tree, count: int, neighbour: float) -> None:
    """Opens ``count`` tasks, each with chance ``neighbour`` one that talks to those chosen so far."""
    tasks, chosen = len(tree.is_open), 0
    while chosen < count:
        task = -1
        if chosen > 0 and uniform(walk.random) < neighbour:
            at = tree.order[int(uniform(walk.random) * chosen)]
            flows = view.flows_first[at + 1] - view.flows_first[at]
            if flows > 0:
                f = view.flows_of[view.flows_first[at] + int(uniform(walk.random) * flows)]
                task = view.flow_dst[f] if view.flow_src[f] == at else view.flow_src[f]
        if task < 0:
            task = int(uniform(walk.random) * tasks)
        if tree.is_open[task] == 0:
            tree.is_open[task] = 1
            tree.order[chosen] = task
            chosen += 1


@inner
def _draw(
    view: Compact,
    state: State,
    walk: Walk,
    tree: Tree,
    weights: FloatArray,
    task: int,
    elsewhere: bool,
    listed: IntArray,
    values: FloatArray,
) -> int:
    """The node that the policy draws for a task among those where it suits the balance best; -1: there is none.
    ``elsewhere``: not where it was. What is weighed is in units of the composite, linearised around the state."""
    candidates, flows = view.fits.shape[1], len(view.low)
    number = _calmest(view, state, task, elsewhere, listed, values)
    mean = state.link_sums[0] / view.link_count
    spread = math.sqrt(max(state.link_sums[1] / view.link_count - mean * mean, 1e-12))
    links = 0.5 * weights[LINKS] * view.weights[2] / (2.0 * spread * view.link_count)
    unit = _unit(view)
    lost, hops, noise = 0.5 * weights[LOST] / max(flows, 1), unit * weights[HOPS], unit * max(weights[NOISE], 0.0)
    best, most = -1, -math.inf
    for i in range(number):
        # The largest of values with Gumbel noise is a draw by their softmax.
        luck = -math.log(max(-math.log(max(uniform(walk.random), 1e-12)), 1e-12))
        node, value = listed[i], values[i] + noise * luck
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
        if value > most:
            best, most = node, value
    return best


@inner
def _calmest(view: Compact, state: State, task: int, elsewhere: bool, listed: IntArray, values: FloatArray) -> int:
    """Lists the nodes where the task costs the nodes' balance least, the best first. Returns how many."""
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
        value = 0.0
        for row in range(2):
            more = view.demand[task, row] * view.inverse[row, n]
            value -= slope[row] * more * (2.0 * (state.use[row, n] - mean[row]) + more)
        if (number == breadth and values[breadth - 1] >= value) or not _holds(view, state, task, n):
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
    view: Compact, state: State, f: int, pair: int, mean: float, links: float, lost: float, hops: float
) -> float:
    """What the flow costs on the cheapest of its paths: by the links' spread, what it cannot have, and hops."""
    high, span = view.high[f], view.high[f] - view.low[f]
    least = NO_ROOM
    for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
        room, price = math.inf, 0.0
        first, last = view.path_first[q], view.path_first[q + 1]
        for i in range(first, last):
            r = view.path_resource[i]
            room = min(room, state.spare[r] / view.path_times[i])
            more = high * view.link_inverse[r]
            price += more * (2.0 * (state.link_use[r] - mean) + more)
        price = links * price + hops * (last - first)
        if room < high:
            price += lost * (high - room) / span if span > 0.0 else NO_ROOM
        least = min(least, price)
    return least
