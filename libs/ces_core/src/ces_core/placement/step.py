"""One step of a partial placement: put a task on a node, route its flows to placed tasks, and undo both."""

from __future__ import annotations

import math
from typing import Protocol

from ces_core.compiled.jit import compiled, inner
from ces_core.model.topology import IntArray
from ces_core.placement.state import State, carry, put
from ces_core.placement.view import ProblemView
from ces_core.placement.worth import link_worth

LEAST_PROSPECT = -50.0
"""Paths that cannot carry a flow's minimum have a lower value than this, all others a higher one."""


class Partial(Protocol):
    """A partial placement, as compiled code reads it while tasks are placed one by one: T tasks and F flows. Placing
    a task also routes its flows to tasks already placed."""

    @property
    def order(self) -> IntArray: ...  # (T,) tasks in placement order

    @property
    def placement(self) -> IntArray: ...  # (T,)

    @property
    def is_open(self) -> IntArray: ...  # (T,) 1: not yet placed

    @property
    def trail(self) -> IntArray: ...  # (F,) flows routed so far, in order

    @property
    def carried(self) -> IntArray: ...  # (T + 1,) length of the trail before each task


@inner
def loss_of(view: ProblemView, f: int, rate: float) -> float:
    """Satisfaction that flow ``f`` loses at this rate."""
    span = view.high[f] - view.low[f]
    return (view.high[f] - rate) / span if span > 0.0 else 0.0


@inner
def imbalance_with(view: ProblemView, state: State, task: int, node: int) -> float:
    """The nodes' imbalance if ``task`` were added to ``node``."""
    imbalance = 0.0
    for row in range(2):
        more = view.demand[task, row] * view.inverse[row, node]
        squares = state.node_sums[row, 1] + more * (2.0 * state.use[row, node] + more)
        mean = (state.node_sums[row, 0] + more) / view.node_count[row]
        imbalance += view.weights[row] * math.sqrt(max(squares / view.node_count[row] - mean * mean, 0.0))
    return imbalance


@compiled
def holds(view: ProblemView, state: State, task: int, node: int) -> bool:
    """Whether the task fits into the residual capacity of the node."""
    fits = True
    for row in range(3):
        fits = fits and view.demand[task, row] <= state.free[row, node]
    return fits


@compiled
def flow_loss(view: ProblemView, state: State, tree: Partial, likely_weight: float, task: int, node: int) -> float:
    """Satisfaction lost by flows between ``task`` on ``node`` and placed tasks; infinite where a minimum does not fit.
    ``likely_weight`` weighs the loss at likely rates against that at rates certain to be available."""
    lost = 0.0
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        src, dst = view.flow_src[f], view.flow_dst[f]
        other = dst if src == task else src
        if other >= 0 and tree.is_open[other]:
            continue
        there = tree.placement[other] if other >= 0 else -1 - other
        if there == node:
            continue
        a, b = (node, there) if src == task else (there, node)
        pair = a * view.fits.shape[1] + b
        widest, best_rate = -1.0, -math.inf
        for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
            residual = likely = math.inf
            for i in range(view.path_first[q], view.path_first[q + 1]):
                residual = min(residual, state.reserve[view.path_resource[i]] / view.path_times[i])
                likely = min(likely, state.spare[view.path_resource[i]] / view.path_times[i])
            widest = max(widest, residual)
            best_rate = max(best_rate, likely)
            if best_rate >= view.high[f]:
                break
        if widest < view.low[f]:
            return math.inf
        if best_rate < view.high[f]:
            best_rate = max(best_rate, view.low[f] - 3.0 * (view.high[f] - view.low[f]))
            lost += likely_weight * loss_of(view, f, best_rate) + (1.0 - likely_weight) * loss_of(
                view, f, min(widest, view.high[f])
            )
    return lost


@compiled
def prospect(view: ProblemView, state: State, f: int, q: int) -> tuple[float, float]:
    """(rate, value) that flow f can expect on path q, given the load of the others."""
    low, high = view.low[f], view.high[f]
    sure = residual = math.inf
    total, squares = state.link_sums[0], state.link_sums[1]
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r, times = view.path_resource[i], view.path_times[i]
        sure = min(sure, state.reserve[r] / times)
        residual = min(residual, state.spare[r] / times)
    guess = min(max(residual, low), high)
    value = min(residual, high) - low
    if high > low:
        value /= high - low
    elif residual >= high:
        value = 1.0
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r = view.path_resource[i]
        more = guess * view.link_inverse[r]
        total += more
        squares += more * (2.0 * state.link_use[r] + more)
    mean = total / view.link_count
    spread = math.sqrt(max(squares / view.link_count - mean * mean, 0.0))
    value = max(value, -10.0) / len(view.low) - view.weights[2] * spread
    if len(view.worth) > 0:
        for i in range(view.path_first[q], view.path_first[q + 1]):
            left = state.spare[view.path_resource[i]]
            value += 2.0 * (link_worth(view, left - guess * view.path_times[i]) - link_worth(view, left))
    if sure < low:
        value += 100.0 * max((sure - low) / max(low, 1e-300), -10.0) - 100.0
    return guess, value


@inner
def best_path(view: ProblemView, state: State, f: int, a: int, b: int, least: float) -> tuple[int, float]:
    """(path, rate): the most promising path for flow f from node a to node b, and the rate it can expect there; path -1
    where none promises more than ``least``."""
    pair = a * view.fits.shape[1] + b
    best, best_value, best_guess = -1, least, 0.0
    for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
        guess, value = prospect(view, state, f, q)
        if value > best_value:
            best, best_value, best_guess = q, value, guess
    return best, best_guess


@inner
def route_flow(view: ProblemView, state: State, f: int, a: int, b: int) -> bool:
    """Routes flow f from node a to node b on the most promising path. Returns False, changing nothing, where none can
    carry its minimum."""
    best, guess = best_path(view, state, f, a, b, LEAST_PROSPECT)
    if best < 0:
        return False
    state.trial_path[f] = best
    state.guess[f] = guess
    carry(view, state, best, guess, view.low[f])
    return True


@compiled
def step_to(view: ProblemView, state: State, tree: Partial, level: int, node: int) -> bool:
    """Puts the level's task on ``node`` and routes its flows to placed tasks. Returns False, changing nothing, where a
    minimum does not fit."""
    task = tree.order[level]
    tree.placement[task] = node
    tree.is_open[task] = 0
    put(view, state, task, node, 1.0)
    trail = tree.carried[level]
    ok = True
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        src, dst = view.flow_src[f], view.flow_dst[f]
        other = dst if src == task else src
        if other >= 0 and tree.is_open[other]:
            continue
        a = tree.placement[src] if src >= 0 else -1 - src
        b = tree.placement[dst] if dst >= 0 else -1 - dst
        if not route_flow(view, state, f, a, b):
            ok = False
            break
        tree.trail[trail] = f
        trail += 1
    tree.carried[level + 1] = trail
    if not ok:
        step_back(view, state, tree, level)
    return ok


@compiled
def step_back(view: ProblemView, state: State, tree: Partial, level: int) -> None:
    """Undoes :func:`step_to` of this level."""
    task = tree.order[level]
    for i in range(tree.carried[level], tree.carried[level + 1]):
        f = tree.trail[i]
        carry(view, state, state.trial_path[f], -state.guess[f], -view.low[f])
    put(view, state, task, tree.placement[task], -1.0)
    tree.is_open[task] = 1


@inner
def unwind(view: ProblemView, state: State, tree: Partial, level: int, first: int) -> None:
    """Undoes :func:`step_to` of all levels before ``level``, the latest first, down to ``first``."""
    for at in range(level - 1, first - 1, -1):
        step_back(view, state, tree, at)
