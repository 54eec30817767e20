"""The rewards of single steps (4.2.4): the base reward of each phase and the five heuristic terms (eqs 4-30, 4-31); and
what a complete decision is worth, with the bandwidth rule of ``ppo-balance`` as training plays it.

The thesis names the terms, not all of their formulas; each lies between 0 and 1 here.
"""

from __future__ import annotations

import math

from ces_core.compiled.jit import compiled, inner
from ces_core.learned.thesis.state import GIVEN, Progress, node_at, take, widest_path
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.view import ProblemView

BASE, LOAD, AFFINITY, TOPOLOGY, IMPORTANCE, COMPETITION = range(6)
TERMS = 6
IDEAL = 0.625
"""The utilisation that the base reward of mapping draws nodes to."""
IMBALANCE, SATISFACTION, USE = range(3)
"""Places in an outcome: L, D, and the mean utilisation of CPU and memory over all nodes."""
OUTCOME = 3


@compiled
def of_mapping(view: ProblemView, progress: Progress, task: int, node: int, terms: FloatArray) -> None:
    """Sets ``terms`` (TERMS,) to what mapping ``task`` to ``node`` earns; to be asked before it is done.

    Base: half for success, a quarter each for how near CPU and memory come to ``IDEAL``. Load: what the node has left
    before. Affinity: the cosine between what is asked and what is left, as shares. Topology: over the flows to tasks
    that are mapped, weighted by their maximums, 1 / (1 + hops).
    """
    terms[:] = 0.0
    nearness = inner = asked = left = load = 0.0
    for k in range(2):
        inverse = view.inverse[k, node]
        share = view.demand[task, k] * inverse
        free = max(progress.free[k, node], 0.0) * inverse
        use = view.use[k, node] + (view.free[k, node] - progress.free[k, node]) * inverse
        nearness += 0.5 * max(1.0 - abs(use + share - IDEAL) / IDEAL, 0.0)
        load += 0.5 * min(use, 1.0)
        inner += share * free
        asked += share * share
        left += free * free
    terms[BASE] = 0.5 + 0.5 * nearness
    terms[LOAD] = 1.0 - load
    terms[AFFINITY] = inner / math.sqrt(asked * left) if asked > 0.0 and left > 0.0 else 0.0
    near = heard = 0.0
    for j in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[j]
        other = view.flow_dst[f] if view.flow_src[f] == task else view.flow_src[f]
        there = node_at(progress, other)
        if there < 0:
            continue
        pair = node * view.fits.shape[1] + there
        q = view.pair_first[pair]
        if q < view.pair_first[pair + 1]:
            near += view.high[f] / (1.0 + view.path_first[q + 1] - view.path_first[q])
        heard += view.high[f]
    terms[TOPOLOGY] = near / heard if heard > 0.0 else 0.0


@compiled
def of_level(view: ProblemView, progress: Progress, flow: int, path: int, rate: float, terms: FloatArray) -> None:
    """Likewise for giving ``flow`` the ``rate`` on ``path``, to be asked before it is done.

    Base: the share of its range that the flow gets. Importance: that, times the flow's part in the job's maximums.
    Competition: what the fullest link of the path has left afterwards, as a share.
    """
    terms[:] = 0.0
    span = view.high[flow] - view.low[flow]
    terms[BASE] = (rate - view.low[flow]) / span if span > 0.0 else 1.0
    terms[IMPORTANCE] = terms[BASE] * view.high[flow] / max(view.high.sum(), 1e-300)
    least = 1.0
    for j in range(view.path_first[path], view.path_first[path + 1]):
        r = view.path_resource[j]
        least = min(least, (progress.spare[r] - view.path_times[j] * rate) / view.residual[r])
    terms[COMPETITION] = max(least, 0.0)


@compiled
def outcome(view: ProblemView, progress: Progress, found: FloatArray) -> None:
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
    for r in range(len(view.residual)):
        before = view.link_use[r]
        after = before + (view.residual[r] - progress.spare[r]) * view.link_inverse[r]
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
def serve_by_importance(view: ProblemView, progress: Progress, importance: FloatArray, order: IntArray) -> bool:
    """Paths and rates for mapped tasks as in :func:`ces_core.baselines.rates.importance_rates`; False where a
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
        q = widest_path(view, progress, f)
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
def _left(view: ProblemView, progress: Progress, path: int) -> float:
    left = math.inf
    for j in range(view.path_first[path], view.path_first[path + 1]):
        left = min(left, progress.spare[view.path_resource[j]] / view.path_times[j])
    return left


@inner
def _spread(count: float, total: float, squares: float) -> float:
    return math.sqrt(max(squares / count - (total / count) ** 2, 0.0))
