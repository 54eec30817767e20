"""Simulated annealing over placements: move one task, swap two tasks, or give a flow another path."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled, inner, lent
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.fill import FillWork
from ces_core.placement.state import State
from ces_core.placement.trial import ROUGH, accept, attempt, attempt_path
from ces_core.placement.view import ProblemView


class SearchMemory(NamedTuple):
    """Search memory besides the current state: random generator, scratch space and the best placement found."""

    random: IntArray  # (1,) the generator's state
    choices_first: IntArray  # (T + 1,) nodes of task t: choices[choices_first[t] : choices_first[t + 1]]
    choices: IntArray
    trial: IntArray  # (T,)
    changed: IntArray  # (T,)
    best: IntArray  # (T,) the best placement so far
    best_path: IntArray  # (F,)
    best_rates: FloatArray  # (F,)
    best_score: FloatArray  # (1,)
    stalled: IntArray  # (1,) consecutive neighbourhoods without improvement


def random_of(seed: int) -> int:
    """Initial generator state for a seed."""
    return (seed * 2654435761 + 88172645463325) % 2**48


@compiled
def new_search_memory(view: ProblemView, random: int) -> SearchMemory:
    """Memory of a search that has found nothing yet; for ``random`` see :func:`random_of`."""
    tasks, nodes = view.fits.shape
    flows = len(view.low)
    choices_first = np.zeros(tasks + 1, dtype=np.int64)
    choices = np.zeros(int(view.fits.sum()), dtype=np.int64)
    count = 0
    for t in range(tasks):
        for n in range(nodes):
            if view.fits[t, n]:
                choices[count] = n
                count += 1
        choices_first[t + 1] = count
    return SearchMemory(
        random=np.full(1, random, dtype=np.int64),
        choices_first=choices_first,
        choices=choices,
        trial=np.zeros(tasks, dtype=np.int64),
        changed=np.zeros(tasks, dtype=np.int64),
        best=np.zeros(tasks, dtype=np.int64),
        best_path=np.zeros(flows, dtype=np.int64),
        best_rates=np.zeros(flows),
        best_score=np.full(1, -math.inf),
        stalled=np.zeros(1, dtype=np.int64),
    )


@compiled
def uniform(random: IntArray) -> float:
    """The next number of a 48-bit linear congruential generator, in [0, 1). Identical with and without numba."""
    state = (int(random[0]) * 25214903917 + 11) & 281474976710655
    random[0] = state
    return state / 281474976710656.0


@inner
def anneal(
    view: ProblemView,
    work: FillWork,
    state: State,
    walk: SearchMemory,
    steps: int,
    hot: float,
    cold: float,
    first: int,
    last: int,
) -> int:
    """Runs steps ``first`` to ``last`` of a schedule of ``steps`` that cools geometrically from ``hot`` to ``cold``, in
    units of the score. Returns how many steps that is."""
    view, work, state, walk = lent(view), lent(work), lent(state), lent(walk)
    tasks = len(state.node_of)
    flows = len(view.low)
    for step in range(first, last):
        temperature = hot * (cold / hot) ** (step / steps)
        worth = state.score[0] + temperature * math.log(max(uniform(walk.random), 1e-12))
        kind = uniform(walk.random)
        for t in range(tasks):
            walk.trial[t] = state.node_of[t]
        if kind < 0.1 and flows > 0:
            f = int(uniform(walk.random) * flows)
            q = _other_path(view, state, walk, f)
            if q < 0:
                continue
            score = attempt_path(view, work, state, f, q)
        else:
            t = int(uniform(walk.random) * tasks)
            count = 1
            walk.changed[0] = t
            if kind < 0.4 and tasks > 1:
                u = int(uniform(walk.random) * (tasks - 1))
                u += u >= t
                a, b = state.node_of[t], state.node_of[u]
                if a == b or not view.fits[t, b] or not view.fits[u, a]:
                    continue
                walk.changed[1] = u
                walk.trial[t], walk.trial[u] = b, a
                count = 2
            else:
                first_choice = walk.choices_first[t]
                n = walk.choices[first_choice + int(uniform(walk.random) * (walk.choices_first[t + 1] - first_choice))]
                if n == state.node_of[t]:
                    continue
                walk.trial[t] = n
            score = attempt(view, work, state, walk.trial, walk.changed, count, worth, ROUGH)
        if score > worth:
            accept(view, state, walk.trial, score)
            if score > walk.best_score[0]:
                keep(state, walk)
    return last - first


@compiled
def keep(state: State, walk: SearchMemory) -> None:
    """Stores the state as the best if it is feasible."""
    if not state.fits[0]:
        return
    walk.best[:] = state.node_of
    walk.best_path[:] = state.path
    walk.best_rates[:] = state.rates
    walk.best_score[0] = state.score[0]


@compiled
def back_to_best(view: ProblemView, state: State, walk: SearchMemory) -> None:
    """Restores the best placement as the current state, if there is one."""
    if walk.best_score[0] == -math.inf:
        return
    for f in range(len(view.low)):
        state.trial_path[f] = walk.best_path[f]
        state.trial_rates[f] = walk.best_rates[f]
    state.fits[1] = True
    accept(view, state, walk.best, walk.best_score[0])


@inner
def _other_path(view: ProblemView, state: State, walk: SearchMemory, f: int) -> int:
    src, dst = view.flow_src[f], view.flow_dst[f]
    a = state.node_of[src] if src >= 0 else -1 - src
    b = state.node_of[dst] if dst >= 0 else -1 - dst
    pair = a * view.fits.shape[1] + b
    first, last = view.pair_first[pair], view.pair_first[pair + 1]
    if last - first < 2:
        return -1
    q: int = first + int(uniform(walk.random) * (last - first - 1))
    if q < state.path[f]:
        return q
    return q + 1
