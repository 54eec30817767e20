"""The rewards of single steps (4.2.4): the base reward of each phase and the five heuristic terms (eqs 4-30, 4-31).

The thesis names the terms, not all of their formulas; each lies between 0 and 1 here.
"""

from __future__ import annotations

import math

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled
from ces_core.policy.thesis_state import Progress, node_at
from ces_core.problem import FloatArray

BASE, LOAD, AFFINITY, TOPOLOGY, IMPORTANCE, COMPETITION = range(6)
TERMS = 6
IDEAL = 0.625
"""The utilisation that the base reward of mapping draws nodes to."""


@compiled
def of_mapping(view: Compact, progress: Progress, task: int, node: int, terms: FloatArray) -> None:
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
def of_level(view: Compact, progress: Progress, flow: int, path: int, rate: float, terms: FloatArray) -> None:
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
        least = min(least, (progress.spare[r] - view.path_times[j] * rate) / view.room[r])
    terms[COMPETITION] = max(least, 0.0)
