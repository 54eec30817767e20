"""Takes some tasks off their nodes and looks for the best way to put them back: depth first, with a look ahead.

What a partial placement may still come to is estimated from three parts. Nodes: a lower limit on the variance of their
utilisation, whatever becomes of the tasks yet to be placed. With ``S1`` and ``S2`` the sum of utilisations and of their
squares over N nodes, the variance is ``S2/N - S1**2/N**2``. A task of share ``a`` on a node of utilisation ``u`` adds
``a`` to S1 and ``a * (2u + a)`` to S2 (more where two such tasks meet), and ``S1**2`` lies below its chord between the
smallest and the largest S1 that can come about; so each task's contribution has a minimum over nodes of its own.
Flows whose ends are placed: the rates that their paths have room for. Links: the spread so far. Where room is worth
something, what the tasks placed so far take of that on nodes; more tasks only take more.

A search that has little time does better where these limits are tightened to what is likely (:class:`Caution`); it may
then miss the best plan. Nothing here is a proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork
from ces_core.kernels.jit import compiled, inner
from ces_core.kernels.lending import lent
from ces_core.kernels.state import (
    ROUGH,
    SETTLING,
    THOROUGH,
    State,
    _affected,
    _ahead,
    _carry,
    _clear,
    _node_imbalance,
    _overload,
    _put,
    _rebuild,
    _score,
    accept,
    outright,
)
from ces_core.kernels.step import _holds, _loss, _outlook, _step, _step_back
from ces_core.kernels.worth import node_worth
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

CLOSE = 0.006
"""A leaf this close to the best is looked at thoroughly."""
ROOT = cast(int, np.int64(0))
"""The first level. (A plain 0 would be a type of its own to the compiler.)"""


class Caution(NamedTuple):
    """How far an estimate may go from what is certain (0) to what is likely (1)."""

    satisfaction: float
    """From the rates that the others' minimums leave room for, to those that the others' likely rates do."""
    spread: float
    """From no spread of the links at all, to the spread so far."""
    open_flows: float
    """From open flows that cost nothing, to the mean cost of a flow in the state before."""
    open_tasks: float
    """From the limit on the nodes' imbalance, to the imbalance of the state before, the more so the more is open."""


class Tree(NamedTuple):
    """Scratch space of :func:`rebuild`: T levels, C candidates."""

    limits: FloatArray  # (2, 2) per CPU, memory: what _least found
    rest: FloatArray  # (T,) what the flows that a level leaves open cost at the mean of the state before
    gap: FloatArray  # (1,) from the first limit on the nodes' imbalance to that of the state before; and of their worth
    share: FloatArray  # (2, 2, T) per CPU, memory: the least and the largest share of a node that a task may take
    order: IntArray  # (T,) the tasks to be placed
    level: IntArray  # (1,) where to go on; -1: nothing promising is left
    node: IntArray  # (T, C) per level the nodes to try, the best first
    estimate: FloatArray  # (T, C) what may come of it
    outlook: FloatArray  # (T, C) satisfaction that the task's flows lose there, summed
    listed: IntArray  # (T,) how many
    position: IntArray  # (T,)
    lost: FloatArray  # (T + 1,) satisfaction lost so far, summed over flows
    trail: IntArray  # (F,) flows carried so far, in order
    carried: IntArray  # (T + 1,) how many of the trail belong to the levels before
    placement: IntArray  # (T,)
    is_open: IntArray  # (T,) 1: not placed
    best_placement: IntArray  # (T,)
    best_path: IntArray  # (F,)
    best_rates: FloatArray  # (F,)


@compiled
def new_tree(view: Compact) -> Tree:
    tasks, candidates = view.fits.shape
    flows = len(view.low)
    return Tree(
        limits=np.zeros((2, 2)),
        rest=np.zeros(tasks),
        gap=np.zeros(1),
        share=_shares(view),
        order=np.zeros(tasks, dtype=np.int64),
        level=np.full(1, -1, dtype=np.int64),
        node=np.zeros((tasks, candidates), dtype=np.int64),
        estimate=np.zeros((tasks, candidates)),
        outlook=np.zeros((tasks, candidates)),
        listed=np.zeros(tasks, dtype=np.int64),
        position=np.zeros(tasks, dtype=np.int64),
        lost=np.zeros(tasks + 1),
        trail=np.zeros(flows, dtype=np.int64),
        carried=np.zeros(tasks + 1, dtype=np.int64),
        placement=np.zeros(tasks, dtype=np.int64),
        is_open=np.zeros(tasks, dtype=np.int64),
        best_placement=np.zeros(tasks, dtype=np.int64),
        best_path=np.zeros(flows, dtype=np.int64),
        best_rates=np.zeros(flows),
    )


@inner
def _shares(view: Compact) -> FloatArray:
    """Of each resource and task the least and the largest share of a node that fits."""
    tasks, candidates = view.fits.shape
    shares = np.zeros((2, 2, tasks))
    for row in range(2):
        for t in range(tasks):
            least, most = math.inf, 0.0
            for n in range(candidates):
                if view.fits[t, n]:
                    share = view.demand[t, row] * view.inverse[row, n]
                    least, most = min(least, share), max(most, share)
            shares[row, 0, t] = least if least < math.inf else 0.0
            shares[row, 1, t] = most
    return shares


@inner
def rebuild(
    view: Compact, work: FillWork, state: State, tree: Tree, caution: Caution, count: int, limit: int, breadth: int
) -> int:
    """Places the first ``count`` tasks of ``tree.order`` anew, and accepts the best where it beats the state.

    Looks at no more than ``limit`` partial placements, and at each level at the ``breadth`` most promising nodes.
    Returns how many it looked at. ``tree.level`` must be -1; where it is not so afterwards, there is more to look at,
    and the same call goes on with it, as long as nothing else has changed the state.
    """
    view, work, state, tree = lent(view), lent(work), lent(state), lent(tree)
    resumed = tree.level[0] >= 0
    flows = _affected(view, state, tree.order, count)
    if not resumed:
        _foresee(view, state, tree, count)
    imbalance, ahead = _node_imbalance(view, state), _ahead(view, state)
    for f in range(len(view.low)):
        state.trial_path[f] = state.path[f]
        state.guess[f] = state.rates[f]
    for t in range(len(state.node_of)):
        tree.placement[t] = state.node_of[t]
        tree.is_open[t] = 0
    for i in range(flows):
        f = state.affected[i]
        _carry(view, state, state.path[f], -state.rates[f], -view.low[f])
    for i in range(count):
        t = tree.order[i]
        tree.is_open[t] = 1
        _put(view, state, t, state.node_of[t], -1.0)
    tree.carried[0] = 0
    best = state.score[0] if state.fits[0] else -math.inf
    before = best
    seen, level = 0, ROOT
    if not resumed:
        tree.lost[0] = _lost_elsewhere(view, state, flows)
        tree.gap[0] = max(0.0, imbalance - _expand(view, state, tree, caution, level, count, best, breadth))
        tree.gap[0] += 2.0 * (_ahead(view, state) - ahead)
    while level < tree.level[0] and _step(view, state, tree, level, tree.node[level, tree.position[level] - 1]):
        level += 1
    while level >= 0:
        task = tree.order[level]
        if tree.is_open[task] == 0:
            _step_back(view, state, tree, level)
        at = tree.position[level]
        if at >= tree.listed[level] or tree.estimate[level, at] <= best:
            level -= 1
            continue
        if seen >= limit:
            break
        tree.position[level] = at + 1
        seen += 1
        tree.lost[level + 1] = tree.lost[level] + tree.outlook[level, at]
        if not _step(view, state, tree, level, tree.node[level, at]):
            continue
        if level + 1 < count:
            level += 1
            _expand(view, state, tree, caution, level, count, best, breadth)
            continue
        overload = _overload(state, tree.placement)
        hoped, settled = outright(view, state, overload, flows)
        if hoped + (0.0 if settled else SETTLING) <= best:
            continue
        score = _score(view, work, state, overload, state.trial_path, state.trial_rates, ROUGH)
        if state.fits[1] and score > best - CLOSE:
            score = _score(view, work, state, overload, state.trial_path, state.trial_rates, THOROUGH)
            if score > best:
                best = score
                tree.best_placement[:] = tree.placement
                tree.best_path[:] = state.trial_path
                tree.best_rates[:] = state.trial_rates
    tree.level[0] = level
    for at in range(level - 1, -1, -1):
        _step_back(view, state, tree, at)
    if best > before:
        state.trial_path[:] = tree.best_path
        state.trial_rates[:] = tree.best_rates
        state.fits[1] = True
        accept(view, state, tree.best_placement, best)
    else:
        for i in range(flows):
            _clear(view, state, state.trial_path[state.affected[i]])
        _rebuild(view, state, state.node_of)
    return seen


@inner
def _foresee(view: Compact, state: State, tree: Tree, count: int) -> None:
    """Sets ``rest``: the bandwidth's part of the state's cost, times the share of flows that are open after a level."""
    flows = len(view.low)
    for t in range(len(tree.is_open)):
        tree.is_open[t] = 0
    if flows == 0:
        tree.rest[:] = 0.0
        return
    lost = 0.0
    for f in range(flows):
        lost += _loss(view, f, state.rates[f])
    mean = state.link_sums[0] / view.link_count
    spread = math.sqrt(max(state.link_sums[1] / view.link_count - mean * mean, 0.0))
    cost = lost / flows + view.weights[2] * spread
    for level in range(count - 1, -1, -1):
        waiting = 0
        for f in range(flows):
            src, dst = view.flow_src[f], view.flow_dst[f]
            waiting += (src >= 0 and tree.is_open[src] == 1) or (dst >= 0 and tree.is_open[dst] == 1)
        tree.rest[level] = cost * waiting / flows
        tree.is_open[tree.order[level]] = 1


@inner
def _lost_elsewhere(view: Compact, state: State, flows: int) -> float:
    """What the flows of tasks that stay have lost; nothing is known of that where the state does not fit."""
    lost = 0.0
    if not state.fits[0]:
        return lost
    for f in range(len(view.low)):
        if view.flow_src[f] >= 0 or view.flow_dst[f] >= 0:
            lost += _loss(view, f, state.rates[f])
    for i in range(flows):
        lost -= _loss(view, state.affected[i], state.rates[state.affected[i]])
    return max(lost, 0.0)


@inner
def _expand(
    view: Compact, state: State, tree: Tree, caution: Caution, level: int, count: int, best: float, breadth: int
) -> float:
    """Lists the nodes for the level's task, the most promising first. Returns the least limit on the nodes'
    imbalance."""
    task = tree.order[level]
    candidates = view.fits.shape[1]
    tree.position[level] = 0
    listed = 0
    # The others' least contribution to each variance, whatever becomes of them, and the range of S1.
    for row in range(2):
        tree.limits[row, 0], tree.limits[row, 1] = _least(view, state, tree, level, count, row)
    limit0, slope0, limit1, slope1 = tree.limits[0, 0], tree.limits[0, 1], tree.limits[1, 0], tree.limits[1, 1]
    flows = max(len(view.low), 1)
    mean = state.link_sums[0] / view.link_count
    spread = math.sqrt(max(state.link_sums[1] / view.link_count - mean * mean, 0.0))
    gap = tree.gap[0] * (count - 1 - level) / count if level > 0 else 0.0
    certain = 1.0 - 0.5 * caution.open_flows * tree.rest[level] - 0.5 * caution.open_tasks * gap
    certain += _ahead(view, state)
    certain -= 0.5 * (tree.lost[level] / flows + caution.spread * view.weights[2] * spread)
    smallest = math.inf
    for n in range(candidates):
        if not view.fits[task, n] or not _holds(view, state, task, n):
            continue
        a0 = view.demand[task, 0] * view.inverse[0, n]
        a1 = view.demand[task, 1] * view.inverse[1, n]
        v0 = limit0 + a0 * (2.0 * state.use[0, n] + a0) / view.node_count[0] - slope0 * a0
        v1 = limit1 + a1 * (2.0 * state.use[1, n] + a1) / view.node_count[1] - slope1 * a1
        imbalance = view.weights[0] * math.sqrt(max(v0, 0.0)) + view.weights[1] * math.sqrt(max(v1, 0.0))
        smallest = min(smallest, imbalance)
        value = certain - 0.5 * imbalance
        if len(view.worth) > 0:
            cpu, memory = state.free[0, n], state.free[1, n]
            value += node_worth(view, cpu - view.demand[task, 0], memory - view.demand[task, 1])
            value -= node_worth(view, cpu, memory)
        if value <= best:
            continue
        lost = _outlook(view, state, tree, caution.satisfaction, task, n)
        value -= 0.5 * lost / flows
        if value <= best:
            continue
        at = listed
        if listed == breadth:
            if tree.estimate[level, listed - 1] >= value:
                continue
            at = listed - 1
        else:
            listed += 1
        while at > 0 and tree.estimate[level, at - 1] < value:
            tree.estimate[level, at] = tree.estimate[level, at - 1]
            tree.node[level, at] = tree.node[level, at - 1]
            tree.outlook[level, at] = tree.outlook[level, at - 1]
            at -= 1
        tree.estimate[level, at] = value
        tree.node[level, at] = n
        tree.outlook[level, at] = lost
    tree.listed[level] = listed
    return smallest


@inner
def _least(view: Compact, state: State, tree: Tree, level: int, count: int, row: int) -> tuple[float, float]:
    """(limit, slope): with share a on a node of use u for the level's task, the variance of CPU (row 0) or memory comes
    to at least ``limit + a * (2u + a) / N - slope * a``."""
    nodes = view.node_count[row]
    low = high = state.node_sums[row, 0]
    for k in range(level, count):
        low += tree.share[row, 0, tree.order[k]]
        high += tree.share[row, 1, tree.order[k]]
    slope = (low + high) / (nodes * nodes)
    limit = state.node_sums[row, 1] / nodes - slope * state.node_sums[row, 0] + low * high / (nodes * nodes)
    for k in range(level + 1, count):
        task = tree.order[k]
        demand = view.demand[task, row]
        least = math.inf
        for n in range(view.fits.shape[1]):
            if view.fits[task, n] and demand <= state.free[row, n]:
                a = demand * view.inverse[row, n]
                least = min(least, a * (2.0 * state.use[row, n] + a) / nodes - slope * a)
        limit += least
    return limit, slope
