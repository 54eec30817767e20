"""Whether what is placed leaves a place for all other tasks: a depth-first search that asks no policy.

It finds out in tens of microseconds what a policy would take many steps back to find out.
"""

from __future__ import annotations

import math

import numpy as np

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled
from ces_core.kernels.lending import lent
from ces_core.kernels.state import State
from ces_core.kernels.step import _holds, _outlook, _step, _step_back
from ces_core.policy.episode import Episode
from ces_core.problem import FloatArray
from ces_core.topology import IntArray


@compiled
def completion(
    view: Compact, state: State, episode: Episode, budget: int, found: IntArray, left_over: IntArray
) -> bool:
    """Whether the open tasks were seen to have places, in the episode's order, within ``budget`` steps; ``found`` (T,)
    then says where all tasks are. ``left_over`` (T,) counts how often a task was left without a node. The state
    stays."""
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
            if not _step(view, state, episode, level, node[level, tried[level] - 1]):
                continue
            if not _all_have_places(view, state, episode, level + 1, left_over):
                _step_back(view, state, episode, level)
                continue
            level += 1
            if level < tasks:
                listed[level] = _list(view, state, episode, level, node[level], cost)
                tried[level] = 0
            continue
        level -= 1
        if level >= first:
            _step_back(view, state, episode, level)
    if level < first:
        return False
    for t in range(tasks):
        found[t] = episode.placement[t]
    while level > first:
        level -= 1
        _step_back(view, state, episode, level)
    return True


@compiled
def _list(view: Compact, state: State, episode: Episode, level: int, node: IntArray, cost: FloatArray) -> int:
    """Sets ``node`` (C,) to those that the level's task may go to, first where its flows lose least and least is in
    use. Returns how many they are."""
    task = episode.order[level]
    flows = max(len(view.low), 1)
    count = 0
    for n in range(len(node)):
        if not view.fits[task, n] or not _holds(view, state, task, n):
            continue
        lost = _outlook(view, state, episode, 1.0, task, n)
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
def _all_have_places(view: Compact, state: State, episode: Episode, level: int, left_over: IntArray) -> bool:
    """Whether each open task, for itself, has a node."""
    for i in range(level, len(episode.order)):
        t = episode.order[i]
        place = False
        for n in range(view.fits.shape[1]):
            if view.fits[t, n] and _holds(view, state, t, n) and _outlook(view, state, episode, 1.0, t, n) < math.inf:
                place = True
                break
        if not place:
            left_over[t] += 1
            return False
    return True
