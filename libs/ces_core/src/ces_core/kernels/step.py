"""One task more on a node, with its flows to tasks that are placed: whether it fits, what it may cost, and back."""

from __future__ import annotations

import math

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled, inner
from ces_core.kernels.partial import Partial
from ces_core.kernels.state import State, _carry, _prospect, _put


@inner
def _loss(view: Compact, f: int, rate: float) -> float:
    span = view.high[f] - view.low[f]
    return (view.high[f] - rate) / span if span > 0.0 else 0.0


@inner
def _imbalance_with(view: Compact, state: State, task: int, node: int) -> float:
    """What the nodes' imbalance would be with one task more on the node."""
    imbalance = 0.0
    for row in range(2):
        more = view.demand[task, row] * view.inverse[row, node]
        squares = state.node_sums[row, 1] + more * (2.0 * state.use[row, node] + more)
        mean = (state.node_sums[row, 0] + more) / view.node_count[row]
        imbalance += view.weights[row] * math.sqrt(max(squares / view.node_count[row] - mean * mean, 0.0))
    return imbalance


@compiled
def _holds(view: Compact, state: State, task: int, node: int) -> bool:
    fits = True
    for row in range(3):
        fits = fits and view.demand[task, row] <= state.free[row, node]
    return fits


@compiled
def _outlook(view: Compact, state: State, tree: Partial, caution: float, task: int, node: int) -> float:
    """What the flows between ``task`` on ``node`` and placed tasks lose of their satisfaction; infinite where a
    minimum has no room."""
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
        widest, most = -1.0, -math.inf
        for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
            room = likely = math.inf
            for i in range(view.path_first[q], view.path_first[q + 1]):
                room = min(room, state.reserve[view.path_resource[i]] / view.path_times[i])
                likely = min(likely, state.spare[view.path_resource[i]] / view.path_times[i])
            widest = max(widest, room)
            most = max(most, likely)
            if most >= view.high[f]:
                break
        if widest < view.low[f]:
            return math.inf
        if most < view.high[f]:
            most = max(most, view.low[f] - 3.0 * (view.high[f] - view.low[f]))
            lost += caution * _loss(view, f, most) + (1.0 - caution) * _loss(view, f, min(widest, view.high[f]))
    return lost


@inner
def _lead(view: Compact, state: State, f: int, a: int, b: int) -> bool:
    """Carries flow f from node a to node b, on the path that promises most; False, and nothing changed, where none has
    room for its minimum."""
    pair = a * view.fits.shape[1] + b
    best, best_value, best_guess = -1, -50.0, 0.0
    for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
        guess, value = _prospect(view, state, f, q)
        if value > best_value:
            best, best_value, best_guess = q, value, guess
    if best < 0:
        return False
    state.trial_path[f] = best
    state.guess[f] = best_guess
    _carry(view, state, best, best_guess, view.low[f])
    return True


@compiled
def _step(view: Compact, state: State, tree: Partial, level: int, node: int) -> bool:
    """Puts the level's task on ``node`` and carries its flows to placed tasks; False, and nothing changed, where a
    minimum has no room."""
    task = tree.order[level]
    tree.placement[task] = node
    tree.is_open[task] = 0
    _put(view, state, task, node, 1.0)
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
        if not _lead(view, state, f, a, b):
            ok = False
            break
        tree.trail[trail] = f
        trail += 1
    tree.carried[level + 1] = trail
    if not ok:
        _step_back(view, state, tree, level)
    return ok


@compiled
def _step_back(view: Compact, state: State, tree: Partial, level: int) -> None:
    task = tree.order[level]
    for i in range(tree.carried[level], tree.carried[level + 1]):
        f = tree.trail[i]
        _carry(view, state, state.trial_path[f], -state.guess[f], -view.low[f])
    _put(view, state, task, tree.placement[task], -1.0)
    tree.is_open[task] = 1
