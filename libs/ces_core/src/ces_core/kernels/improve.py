"""Improves a state: the tasks of one neighbourhood after the other are placed anew, and paths are changed.

Where neighbourhoods stop to gain anything, a few tasks are kicked elsewhere, and it goes on from there."""

from __future__ import annotations

import math

from ces_core.kernels.anneal import Walk, back_to_best, keep, uniform
from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork
from ces_core.kernels.jit import compiled, inner
from ces_core.kernels.lending import lent
from ces_core.kernels.rebuild import Caution, Tree, rebuild
from ces_core.kernels.state import ROUGH, State, accept, attempt, attempt_path

NEIGHBOUR = 0.6
"""Chance that the next task of a neighbourhood is one that talks to those chosen so far."""
KICKED, KICKS = 3, 20
"""So many tasks are kicked elsewhere; so often, at most, that is tried."""
FILLED = 20_000
"""So many rates, over all paths that are tried, are settled to find better ones."""


@inner
def improve(
    view: Compact,
    work: FillWork,
    state: State,
    walk: Walk,
    tree: Tree,
    caution: Caution,
    size: int,
    limit: int,
    breadth: int,
    patience: int,
    budget: int,
) -> int:
    """Rebuilds random neighbourhoods of up to ``size`` tasks until ``budget`` partial placements were looked at, at
    most ``limit`` for each. After ``patience`` of them without gain it goes on from the best that the walk remembers,
    with a few tasks elsewhere. Returns how many partial placements were looked at; the walk remembers the best, and
    the state may be another.
    """
    view, work, state, walk, tree = lent(view), lent(work), lent(state), lent(walk), lent(tree)
    seen = 0
    tasks = len(state.node_of)
    while seen < budget:
        if walk.stalled[0] >= patience:
            walk.stalled[0] = 0
            _keep_if_better(state, walk)
            back_to_best(view, work, state, walk)
            seen += _kick(view, work, state, walk)
        before = state.score[0]
        count = min(tasks, 2 + int(uniform(walk.random) * (size - 1)))
        _choose(view, walk, tree, count)
        tree.level[0] = -1
        seen += 1 + rebuild(view, work, state, tree, caution, count, limit, breadth)
        walk.stalled[0] = 0 if state.score[0] > before else walk.stalled[0] + 1
    _keep_if_better(state, walk)
    return seen


@inner
def _keep_if_better(state: State, walk: Walk) -> None:
    if state.score[0] > walk.best_score[0]:
        keep(state, walk)


@inner
def _kick(view: Compact, work: FillWork, state: State, walk: Walk) -> int:
    """Puts a few tasks elsewhere at random where the plan still fits. Returns how many placements it looked at."""
    tasks = len(state.node_of)
    kicked, tried = 0, 0
    while kicked < KICKED and tried < KICKS:
        tried += 1
        t = int(uniform(walk.random) * tasks)
        first, last = walk.choices_first[t], walk.choices_first[t + 1]
        n = walk.choices[first + int(uniform(walk.random) * (last - first))]
        if n == state.node_of[t]:
            continue
        for u in range(tasks):
            walk.trial[u] = state.node_of[u]
        walk.trial[t] = n
        walk.changed[0] = t
        score = attempt(view, work, state, walk.trial, walk.changed, 1, -math.inf, ROUGH)
        if state.fits[1]:
            accept(view, state, walk.trial, score)
            kicked += 1
    return tried


@inner
def _choose(view: Compact, walk: Walk, tree: Tree, count: int) -> None:
    tasks = len(tree.is_open)
    for t in range(tasks):
        tree.is_open[t] = 0
    chosen = 0
    while chosen < count:
        task = -1
        if chosen > 0 and uniform(walk.random) < NEIGHBOUR:
            at = tree.order[int(uniform(walk.random) * chosen)]
            flows = view.flows_first[at + 1] - view.flows_first[at]
            if flows > 0:
                f = view.flows_of[view.flows_first[at] + int(uniform(walk.random) * flows)]
                task = view.flow_dst[f] if view.flow_src[f] == at else view.flow_src[f]
        if task < 0:
            task = int(uniform(walk.random) * tasks)
        if tree.is_open[task] == 0:
            tree.is_open[task] = 1
            tree.order[chosen] = task
            chosen += 1


@compiled
def better_paths(view: Compact, work: FillWork, state: State) -> None:
    """Moves one flow after the other to another of its paths where that helps, until a whole round has moved none.

    A plan that fits stays one: a state that does not may score higher than one that satisfies hardly any flow. The more
    flows there are, the fewer paths are tried, since each trial settles all rates anew.
    """
    view, work, state = lent(view), lent(work), lent(state)
    flows, candidates = len(view.low), view.fits.shape[1]
    tried, unmoved, f = 0, 0, 0
    while unmoved < flows and tried * flows < FILLED:
        src, dst = view.flow_src[f], view.flow_dst[f]
        a = state.node_of[src] if src >= 0 else -1 - src
        b = state.node_of[dst] if dst >= 0 else -1 - dst
        first, last = view.pair_first[a * candidates + b], view.pair_first[a * candidates + b + 1]
        unmoved += 1
        for q in range(first, last):
            if last - first < 2 or q == state.path[f]:
                continue
            tried += 1
            score = attempt_path(view, work, state, f, q)
            if score > state.score[0] + 1e-12 and (state.fits[1] or not state.fits[0]):
                accept(view, state, state.node_of, score)
                unmoved = 0
        f = (f + 1) % flows
