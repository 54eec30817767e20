"""The thesis's rewards for single steps: the base reward (4.2.4.1) and the five heuristic terms (eqs 4-30, 4-31).

The thesis names the terms, not their formulas; each lies between 0 and 1 here. A step places one task and routes its
flows to the tasks placed before, so the terms of both of the thesis's phases come with the same step: those of
bandwidth are means over these flows, at the rates that they may expect.
"""

from __future__ import annotations

import math

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled
from ces_core.kernels.state import State
from ces_core.policy.episode import Episode, place, take_back
from ces_core.problem import FloatArray

BASE, LOAD, AFFINITY, TOPOLOGY, IMPORTANCE, COMPETITION = range(6)
TERMS = 6
IDEAL = 0.625
"""The utilisation that the base reward draws nodes to."""


@compiled
def rewards_of_step(view: Compact, state: State, episode: Episode, node: int, terms: FloatArray) -> None:
    """Sets ``terms`` (TERMS,) to what putting the next task on ``node`` earns; the state stays."""
    terms[:] = 0.0
    level = episode.level[0]
    task = episode.order[level]
    load = nearness = 0.0
    inner = asked = left = 0.0
    for k in range(2):
        share = view.demand[task, k] * view.inverse[k, node]
        free = max(state.free[k, node], 0.0) * view.inverse[k, node]
        load += 0.5 * min(state.use[k, node], 1.0)
        nearness += 0.5 * (1.0 - min(abs(state.use[k, node] + share - IDEAL) / IDEAL, 1.0))
        inner += share * free
        asked += share * share
        left += free * free
    terms[LOAD] = 1.0 - load
    terms[AFFINITY] = inner / math.sqrt(asked * left) if asked > 0.0 and left > 0.0 else 0.0
    terms[BASE] = 0.5 + 0.5 * nearness
    if not place(view, state, episode, node):
        return
    first, last = episode.carried[level], episode.carried[level + 1]
    total = 0.0
    for f in range(len(view.low)):
        total += view.high[f]
    near = heard = satisfied = 0.0
    for i in range(first, last):
        f = episode.trail[i]
        q = state.trial_path[f]
        hops = view.path_first[q + 1] - view.path_first[q]
        near += view.high[f] / (1.0 + hops)
        heard += view.high[f]
        span = view.high[f] - view.low[f]
        rate = (state.guess[f] - view.low[f]) / span if span > 0.0 else 1.0
        satisfied += rate
        terms[IMPORTANCE] += rate * view.high[f] / total
        free = 1.0
        for j in range(view.path_first[q], view.path_first[q + 1]):
            r = view.path_resource[j]
            free = min(free, max(state.spare[r], 0.0) / view.room[r] if view.room[r] > 0.0 else 0.0)
        terms[COMPETITION] += free / (last - first)
    terms[TOPOLOGY] = near / heard if heard > 0.0 else 0.0
    if last > first:
        terms[BASE] = 0.5 * terms[BASE] + 0.5 * satisfied / (last - first)
    take_back(view, state, episode)
