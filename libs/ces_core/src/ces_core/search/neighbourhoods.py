"""Large neighbourhood search: ruin and recreate a few tasks at a time.

Where neighbourhoods stop improving the plan, it is perturbed by moving a few tasks at random.
"""

from __future__ import annotations

import math

from ces_core.compiled.jit import inner, lent
from ces_core.placement.fill import FillWork
from ces_core.placement.state import State
from ces_core.placement.trial import ROUGH, accept, attempt
from ces_core.placement.view import ProblemView
from ces_core.search.annealing import SearchMemory, back_to_best, keep, uniform
from ces_core.search.tree import PruningWeights, Tree, recreate

NEIGHBOUR = 0.6
"""Probability that the next task of a neighbourhood shares a flow with one already chosen."""
KICKED, KICKS = 3, 20
"""Number of tasks moved per perturbation, and maximum number of attempts."""


@inner
def improve(
    view: ProblemView,
    work: FillWork,
    state: State,
    walk: SearchMemory,
    tree: Tree,
    pruning: PruningWeights,
    size: int,
    limit: int,
    breadth: int,
    patience: int,
    budget: int,
) -> int:
    """Ruins and recreates random neighbourhoods of up to ``size`` tasks until ``budget`` partial placements were
    examined, at most ``limit`` per neighbourhood. After ``patience`` neighbourhoods without improvement it continues
    from a perturbation of the best placement in ``walk``. Returns the number of partial placements examined; ``walk``
    holds the best, which may differ from the state."""
    view, work, state, walk, tree = lent(view), lent(work), lent(state), lent(walk), lent(tree)
    seen = 0
    tasks = len(state.node_of)
    while seen < budget:
        if walk.stalled[0] >= patience:
            walk.stalled[0] = 0
            _keep_if_better(state, walk)
            back_to_best(view, state, walk)
            seen += _kick(view, work, state, walk)
        before = state.score[0]
        count = min(tasks, 2 + int(uniform(walk.random) * (size - 1)))
        tree.is_open[:] = 0
        choose(view, walk, tree, count, NEIGHBOUR)
        tree.level[0] = -1
        seen += 1 + recreate(view, work, state, tree, pruning, count, limit, breadth)
        walk.stalled[0] = 0 if state.score[0] > before else walk.stalled[0] + 1
    _keep_if_better(state, walk)
    return seen


@inner
def _keep_if_better(state: State, walk: SearchMemory) -> None:
    if state.score[0] > walk.best_score[0]:
        keep(state, walk)


@inner
def _kick(view: ProblemView, work: FillWork, state: State, walk: SearchMemory) -> int:
    """Moves a few tasks to random nodes where the plan stays feasible. Returns the number of placements examined."""
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
def choose(view: ProblemView, walk: SearchMemory, tree: Tree, count: int, neighbour: float) -> None:
    """Fills ``tree.order`` with ``count`` tasks and marks them in ``tree.is_open``, which must be 0 for all: each with
    probability ``neighbour`` one that shares a flow with one chosen before."""
    tasks, chosen = len(tree.is_open), 0
    while chosen < count:
        task = -1
        if chosen > 0 and uniform(walk.random) < neighbour:
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
