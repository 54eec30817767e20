"""What a complete decision is worth, and the bandwidth rule of ``ppo-balance`` as training plays it."""

from __future__ import annotations

import math

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled, inner
from ces_core.policy.thesis_state import GIVEN, Progress, node_at, take, way
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

IMBALANCE, SATISFACTION, USE = range(3)
"""Places in an outcome: L, D, and the mean utilisation of CPU and memory over all nodes."""
OUTCOME = 3


@compiled
def outcome(view: Compact, progress: Progress, found: FloatArray) -> None:
    """Sets ``found`` (OUTCOME,), once all tasks and flows have what they get."""
    nodes = view.fits.shape[1]
    found[:] = 0.0
    for k in range(2):
        total, squares = view.node_sum[k], view.node_squares[k]
        for n in range(nodes):
            before = view.use[k, n]
            after = before + (view.free[k, n] - progress.free[k, n]) * view.inverse[k, n]
            total += after - before
            squares += after * after - before * before
        found[IMBALANCE] += view.weights[k] * _spread(view.node_count[k], total, squares)
        found[USE] += 0.5 * total / view.node_count[k]
    total, squares = view.link_sum, view.link_squares
    for r in range(len(view.room)):
        before = view.link_use[r]
        after = before + (view.room[r] - progress.spare[r]) * view.link_inverse[r]
        total += after - before
        squares += after * after - before * before
    found[IMBALANCE] += view.weights[2] * _spread(view.link_count, total, squares)
    flows = len(view.low)
    for f in range(flows):
        span = view.high[f] - view.low[f]
        found[SATISFACTION] += (progress.rates[f] - view.low[f]) / span / flows if span > 0.0 else 1.0 / flows
    if flows == 0:
        found[SATISFACTION] = 1.0


@compiled
def serve_by_importance(view: Compact, progress: Progress, importance: FloatArray, order: IntArray) -> bool:
    """Paths and rates for mapped tasks as in :func:`ces_core.solvers.baselines.steps.importance_rates`; False where a
    minimum finds no room. The path of each flow is the one with the most left, the most important first.

    ``importance`` and ``order``: room for as many numbers as there are flows.
    """
    flows = len(view.low)
    for f in range(flows):
        importance[f] = 0.0
        for end in (view.flow_src[f], view.flow_dst[f]):
            for g in range(flows):
                importance[f] += (view.flow_src[g] == end) + (view.flow_dst[g] == end)
        at = f
        while at > 0 and importance[order[at - 1]] < importance[f]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = f
    for i in range(flows):
        f = order[i]
        q = way(view, progress, f)
        if q < 0 or _left(view, progress, q) < view.low[f]:
            return False
        progress.path[f] = q
        progress.rates[f] = view.low[f]
        take(view, progress, q, view.low[f])
    for i in range(flows):
        f = order[i]
        if node_at(progress, view.flow_src[f]) == node_at(progress, view.flow_dst[f]):
            progress.rates[f] = view.high[f]
            continue
        meant = (view.high[f] - view.low[f]) * importance[f] / importance[order[0]]
        more = max(min(meant, _left(view, progress, progress.path[f])), 0.0)
        progress.rates[f] = min(view.low[f] + more, view.high[f])
        take(view, progress, progress.path[f], more)
    progress.done[GIVEN] = flows
    return True


@inner
def _left(view: Compact, progress: Progress, path: int) -> float:
    left = math.inf
    for j in range(view.path_first[path], view.path_first[path + 1]):
        left = min(left, progress.spare[view.path_resource[j]] / view.path_times[j])
    return left


@inner
def _spread(count: float, total: float, squares: float) -> float:
    return math.sqrt(max(squares / count - (total / count) ** 2, 0.0))
