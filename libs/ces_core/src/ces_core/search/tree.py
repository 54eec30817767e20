"""Ruin and recreate by tree search: removes some tasks and looks depth-first for the best way to put them back.

The value of a partial placement is estimated from four parts. Nodes: a lower bound on the variance of their
utilisation, wherever the remaining tasks go. With ``S1`` and ``S2`` the sum of utilisations and of their squares over N
nodes, the variance is ``S2/N - S1**2/N**2``. A task of share ``a`` on a node of utilisation ``u`` adds ``a`` to S1 and
``a * (2u + a)`` to S2 (more where two such tasks meet), and ``S1**2`` lies below its chord between the smallest and the
largest possible S1, so each task's contribution has its own minimum over nodes. Flows with both ends placed: the rates
that their paths can carry. Links: their spread so far. Residual capacity, where it has a value: what placed tasks take
of it on nodes, because further tasks only take more.

With little time, a search does better if these bounds are tightened towards likely values (:class:`PruningWeights`), at
the risk of missing the best plan. Nothing here is a proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np

from ces_core.compiled.jit import compiled, inner, lent
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.fill import FillWork
from ces_core.placement.state import (
    State,
    carry,
    clear_path,
    link_spread,
    mark_affected,
    node_imbalance,
    overload_of,
    put,
    recompute,
    worth_ahead,
)
from ces_core.placement.step import flow_loss, holds, loss_of, step_back, step_to, unwind
from ces_core.placement.trial import ROUGH, SETTLING, THOROUGH, accept, outright, score_state
from ces_core.placement.view import ProblemView
from ces_core.placement.worth import is_valued, left_worth

CLOSE = 0.006
"""A leaf this close to the best is evaluated thoroughly."""
ROOT = cast(int, np.int64(0))
"""The first level. (A plain 0 would be a different type to the compiler.)"""


class PruningWeights(NamedTuple):
    """How far each part of an estimate moves from certain (0) to likely (1)."""

    satisfaction: float
    """From rates available beside the others' minimums to rates available beside their likely rates."""
    spread: float
    """From no spread of the links to the spread so far."""
    open_flows: float
    """From no cost of open flows to the mean cost of a flow in the previous state."""
    open_tasks: float
    """From the bound on the nodes' imbalance to the imbalance of the previous state, in proportion to the tasks still
    open."""


class Tree(NamedTuple):
    """Scratch space of :func:`recreate`: T levels, C candidates."""

    limits: FloatArray  # (2, 2) per CPU, memory: what _least found
    rest: FloatArray  # (T,) cost of flows still open after a level, at the mean of the previous state
    gap: FloatArray  # (1,) from the first bound on the nodes' imbalance to that of the previous state; and their value
    share: FloatArray  # (2, 2, T) per CPU, memory: the least and the largest share of a node that a task may take
    order: IntArray  # (T,) tasks to place
    level: IntArray  # (1,) where to resume; -1: nothing promising is left
    node: IntArray  # (T, C) per level: nodes to try, best first
    estimate: FloatArray  # (T, C) estimated score
    outlook: FloatArray  # (T, C) satisfaction lost by the task's flows there
    listed: IntArray  # (T,) number of nodes listed
    position: IntArray  # (T,)
    lost: FloatArray  # (T + 1,) satisfaction lost so far, summed over flows
    trail: IntArray  # (F,) flows routed so far, in order
    carried: IntArray  # (T + 1,) length of the trail before each level
    placement: IntArray  # (T,)
    is_open: IntArray  # (T,) 1: not yet placed
    best_placement: IntArray  # (T,)
    best_path: IntArray  # (F,)
    best_rates: FloatArray  # (F,)


@compiled
def new_tree(view: ProblemView) -> Tree:
    """Scratch space for the problem; no search is in progress."""
    tasks, candidates = view.fits.shape
    flows = len(view.low)
    return Tree(
        limits=np.zeros((2, 2)),
        rest=np.zeros(tasks),
        gap=np.zeros(1),
        share=shares(view, np.zeros((2, 2, tasks))),
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
def shares(view: ProblemView, found: FloatArray) -> FloatArray:
    """Sets ``found`` (2, 2, T) to the smallest and the largest share that a task may take of a node that fits it, per
    resource, and returns it."""
    tasks, candidates = view.fits.shape
    for row in range(2):
        for t in range(tasks):
            least, largest = math.inf, 0.0
            for n in range(candidates):
                if view.fits[t, n]:
                    share = view.demand[t, row] * view.inverse[row, n]
                    least, largest = min(least, share), max(largest, share)
            found[row, 0, t] = least if least < math.inf else 0.0
            found[row, 1, t] = largest
    return found


@inner
def recreate(
    view: ProblemView,
    work: FillWork,
    state: State,
    tree: Tree,
    pruning: PruningWeights,
    count: int,
    limit: int,
    breadth: int,
) -> int:
    """Removes the first ``count`` tasks of ``tree.order``, searches for a better placement of them, and accepts the
    best if it beats the state.

    Examines at most ``limit`` partial placements, and the ``breadth`` most promising nodes per level. Returns the
    number examined. ``tree.level`` must be -1; if it is not -1 afterwards, the search is unfinished, and the same call
    resumes it provided that nothing else has changed the state.
    """
    view, work, state, tree = lent(view), lent(work), lent(state), lent(tree)
    resumed = tree.level[0] >= 0
    flows = mark_affected(view, state, tree.order, count)
    if not resumed:
        _estimate_rest(view, state, tree, count)
    imbalance, ahead = node_imbalance(view, state), worth_ahead(view, state)
    for f in range(len(view.low)):
        state.trial_path[f] = state.path[f]
        state.guess[f] = state.rates[f]
    for t in range(len(state.node_of)):
        tree.placement[t] = state.node_of[t]
        tree.is_open[t] = 0
    for i in range(flows):
        f = state.affected[i]
        carry(view, state, state.path[f], -state.rates[f], -view.low[f])
    for i in range(count):
        t = tree.order[i]
        tree.is_open[t] = 1
        put(view, state, t, state.node_of[t], -1.0)
    tree.carried[0] = 0
    known = state.fits[0] or flows == len(view.low)  # the rates of all flows, so that a leaf's are not guessed too low
    best = state.score[0] if state.fits[0] else -math.inf
    before = best
    seen, level = 0, ROOT
    if not resumed:
        tree.lost[0] = _lost_elsewhere(view, state, flows)
        tree.gap[0] = max(0.0, imbalance - _expand(view, state, tree, pruning, level, count, best, breadth))
        tree.gap[0] += 2.0 * (worth_ahead(view, state) - ahead)
    while level < tree.level[0] and step_to(view, state, tree, level, tree.node[level, tree.position[level] - 1]):
        level += 1
    while level >= 0:
        task = tree.order[level]
        if tree.is_open[task] == 0:
            step_back(view, state, tree, level)
        at = tree.position[level]
        if at >= tree.listed[level] or tree.estimate[level, at] <= best:
            level -= 1
            continue
        if seen >= limit:
            break
        tree.position[level] = at + 1
        seen += 1
        tree.lost[level + 1] = tree.lost[level] + tree.outlook[level, at]
        if not step_to(view, state, tree, level, tree.node[level, at]):
            continue
        if level + 1 < count:
            level += 1
            _expand(view, state, tree, pruning, level, count, best, breadth)
            continue
        overload = overload_of(state, tree.placement)
        hoped, settled = outright(view, state, overload, flows)
        if known and hoped + (0.0 if settled else SETTLING) <= best:
            continue
        score = score_state(view, work, state, overload, state.trial_path, state.trial_rates, ROUGH)
        if state.fits[1] and score > best - CLOSE:
            score = score_state(view, work, state, overload, state.trial_path, state.trial_rates, THOROUGH)
            if score > best:
                best = score
                tree.best_placement[:] = tree.placement
                tree.best_path[:] = state.trial_path
                tree.best_rates[:] = state.trial_rates
    tree.level[0] = level
    unwind(view, state, tree, level, 0)
    if best > before:
        state.trial_path[:] = tree.best_path
        state.trial_rates[:] = tree.best_rates
        state.fits[1] = True
        accept(view, state, tree.best_placement, best)
    else:
        for i in range(flows):
            clear_path(view, state, state.trial_path[state.affected[i]])
        recompute(view, state, state.node_of)
    return seen


@inner
def _estimate_rest(view: ProblemView, state: State, tree: Tree, count: int) -> None:
    """Sets ``rest``: the bandwidth cost of the state, times the share of flows still open after each level."""
    flows = len(view.low)
    for t in range(len(tree.is_open)):
        tree.is_open[t] = 0
    if flows == 0:
        tree.rest[:] = 0.0
        return
    lost = 0.0
    for f in range(flows):
        lost += loss_of(view, f, state.rates[f])
    cost = lost / flows + view.weights[2] * link_spread(view, state)
    for level in range(count - 1, -1, -1):
        waiting = 0
        for f in range(flows):
            src, dst = view.flow_src[f], view.flow_dst[f]
            waiting += (src >= 0 and tree.is_open[src] == 1) or (dst >= 0 and tree.is_open[dst] == 1)
        tree.rest[level] = cost * waiting / flows
        tree.is_open[tree.order[level]] = 1


@inner
def _lost_elsewhere(view: ProblemView, state: State, flows: int) -> float:
    """Satisfaction lost by flows of unaffected tasks; unknown, and taken as 0, where the state is infeasible."""
    lost = 0.0
    if not state.fits[0]:
        return lost
    for f in range(len(view.low)):
        if view.flow_src[f] >= 0 or view.flow_dst[f] >= 0:
            lost += loss_of(view, f, state.rates[f])
    for i in range(flows):
        lost -= loss_of(view, state.affected[i], state.rates[state.affected[i]])
    return max(lost, 0.0)


@inner
def _expand(
    view: ProblemView,
    state: State,
    tree: Tree,
    pruning: PruningWeights,
    level: int,
    count: int,
    best: float,
    breadth: int,
) -> float:
    """Lists the nodes for the level's task, most promising first. Returns the smallest bound on the nodes'
    imbalance."""
    task = tree.order[level]
    candidates = view.fits.shape[1]
    tree.position[level] = 0
    listed = 0
    # Least contribution of the other tasks to each variance, and the range of S1.
    for row in range(2):
        tree.limits[row, 0], tree.limits[row, 1] = _least(view, state, tree, level, count, row)
    limit0, slope0, limit1, slope1 = tree.limits[0, 0], tree.limits[0, 1], tree.limits[1, 0], tree.limits[1, 1]
    flows = max(len(view.low), 1)
    spread = link_spread(view, state)
    gap = tree.gap[0] * (count - 1 - level) / count if level > 0 else 0.0
    certain = 1.0 - 0.5 * pruning.open_flows * tree.rest[level] - 0.5 * pruning.open_tasks * gap
    certain += worth_ahead(view, state)
    certain -= 0.5 * (tree.lost[level] / flows + pruning.spread * view.weights[2] * spread)
    smallest = math.inf
    for n in range(candidates):
        if not view.fits[task, n] or not holds(view, state, task, n):
            continue
        a0 = view.demand[task, 0] * view.inverse[0, n]
        a1 = view.demand[task, 1] * view.inverse[1, n]
        v0 = limit0 + a0 * (2.0 * state.use[0, n] + a0) / view.node_count[0] - slope0 * a0
        v1 = limit1 + a1 * (2.0 * state.use[1, n] + a1) / view.node_count[1] - slope1 * a1
        imbalance = view.weights[0] * math.sqrt(max(v0, 0.0)) + view.weights[1] * math.sqrt(max(v1, 0.0))
        smallest = min(smallest, imbalance)
        value = certain - 0.5 * imbalance
        if is_valued(view):
            cpu, memory, gpu = state.free[0, n], state.free[1, n], state.free[2, n]
            rest = gpu - view.demand[task, 2]
            value += left_worth(view, n, cpu - view.demand[task, 0], memory - view.demand[task, 1], rest)
            value -= left_worth(view, n, cpu, memory, gpu)
        if value <= best:
            continue
        lost = flow_loss(view, state, tree, pruning.satisfaction, task, n)
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
def _least(view: ProblemView, state: State, tree: Tree, level: int, count: int, row: int) -> tuple[float, float]:
    """(limit, slope): with share a on a node of utilisation u for the level's task, the variance of CPU (row 0) or
    memory is at least ``limit + a * (2u + a) / N - slope * a``."""
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
