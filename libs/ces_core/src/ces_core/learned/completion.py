"""A depth-first search for a completion of a partial placement, without a policy.

It finds out in tens of microseconds what a policy would need many backtracking steps for.
"""

from __future__ import annotations

import math

import numpy as np

from ces_core.compiled.jit import compiled, lent
from ces_core.learned.episode import Episode
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.state import State
from ces_core.placement.step import flow_loss, holds, step_back, step_to, unwind
from ces_core.placement.view import ProblemView


@compiled
def completion(
    view: ProblemView, state: State, episode: Episode, budget: int, found: IntArray, left_over: IntArray
) -> bool:
    """Whether the search found nodes for the open tasks, in the episode's order, within ``budget`` steps; ``found``
    (T,) then holds every task's node. ``left_over`` (T,) counts how often a task was left without a node. The state is
    restored."""
    view, state, episode = lent(view), lent(state), lent(episode)
    tasks, candidates = view.fits.shape
    node = np.zeros((tasks, candidates), dtype=np.int64)
    cost = np.zeros(candidates)
    listed = np.zeros(tasks, dtype=np.int64)
    tried = np.zeros(tasks, dtype=np.int64)
    first = level = episode.level[0]
    steps = 0
    if level < tasks:
        listed[level] = _list(view, state, episode, level, node[level], cost)
    while first <= level < tasks:
        if tried[level] < listed[level] and steps < budget:
            steps += 1
            tried[level] += 1
            if not step_to(view, state, episode, level, node[level, tried[level] - 1]):
                continue
            if not _all_have_places(view, state, episode, level + 1, left_over):
                step_back(view, state, episode, level)
                continue
            level += 1
            if level < tasks:
                listed[level] = _list(view, state, episode, level, node[level], cost)
                tried[level] = 0
            continue
        level -= 1
        if level >= first:
            step_back(view, state, episode, level)
    if level < first:
        return False
    for t in range(tasks):
        found[t] = episode.placement[t]
    unwind(view, state, episode, level, first)
    return True


@compiled
def _list(view: ProblemView, state: State, episode: Episode, level: int, node: IntArray, cost: FloatArray) -> int:
    """Set ``node`` (C,) to the nodes for the level's task, ordered by what its flows lose and by use. Returns their
    number."""
    task = episode.order[level]
    flows = max(len(view.low), 1)
    count = 0
    for n in range(len(node)):
        if not view.fits[task, n] or not holds(view, state, task, n):
            continue
        lost = flow_loss(view, state, episode, 1.0, task, n)
        if lost == math.inf:
            continue
        here = lost / flows + state.use[0, n] + state.use[1, n]
        i = count
        while i > 0 and cost[i - 1] > here:
            node[i], cost[i] = node[i - 1], cost[i - 1]
            i -= 1
        node[i], cost[i] = n, here
        count += 1
    return count


@compiled
def _all_have_places(view: ProblemView, state: State, episode: Episode, level: int, left_over: IntArray) -> bool:
    """Whether each open task on its own has a node."""
    for i in range(level, len(episode.order)):
        t = episode.order[i]
        place = False
        for n in range(view.fits.shape[1]):
            if view.fits[t, n] and holds(view, state, t, n) and flow_loss(view, state, episode, 1.0, t, n) < math.inf:
                place = True
                break
        if not place:
            left_over[t] += 1
            return False
    return True
