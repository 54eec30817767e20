"""Improves a state: the tasks of one neighbourhood after the other are placed anew, and paths are changed."""

from __future__ import annotations

from ces_core.kernels.anneal import Walk, uniform
from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork
from ces_core.kernels.jit import compiled, inner
from ces_core.kernels.rebuild import Caution, Tree, rebuild
from ces_core.kernels.state import State, accept, attempt_path

NEIGHBOUR = 0.6
"""Chance that the next task of a neighbourhood is one that talks to those chosen so far."""
FILLED = 20_000
"""So many rates, over all paths that are tried, are settled to find better ones."""


@compiled
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
    budget: int,
) -> int:
    """Rebuilds random neighbourhoods of up to ``size`` tasks until ``budget`` partial placements were looked at, at
    most ``limit`` for each. Returns how many were."""
    seen = 0
    tasks = len(state.node_of)
    while seen < budget:
        count = min(tasks, 2 + int(uniform(walk.random) * (size - 1)))
        _choose(view, walk, tree, count)
        tree.level[0] = -1
        seen += 1 + rebuild(view, work, state, tree, caution, count, limit, breadth)
    return seen


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
