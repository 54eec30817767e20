"""Anytime search in compiled code: a dive, a short annealing, a few tasks placed anew, and whole trees if time allows.

Everything works on few candidates (:mod:`ces_core.candidates`) and on flat arrays (:mod:`ces_core.kernels.compact`).
The tree over all tasks ends by itself where nothing promising is left, which at ten nodes it mostly does; otherwise
neighbourhoods are improved until time or budget is used up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ces_core.candidates import candidates
from ces_core.diagnosis import SearchTrace, explain, obstacle
from ces_core.kernels.anneal import Walk, anneal, back_to_best, keep, new_walk
from ces_core.kernels.compact import Compact, compact
from ces_core.kernels.fill import FillWork, fill_work
from ces_core.kernels.improve import better_paths, improve
from ces_core.kernels.jit import COMPILED
from ces_core.kernels.order import task_order
from ces_core.kernels.rebuild import Caution, Tree, new_tree, rebuild
from ces_core.kernels.state import State, install, new_state
from ces_core.plan import Result
from ces_core.problem import Problem
from ces_core.solvers import greedy
from ces_core.solvers.finishing import planned

SLOW = 1 if COMPILED else 20
"""By how much less is looked at where nothing is compiled."""
BUDGET = 20_000 // SLOW
"""Partial placements that are looked at where no time limit is given."""
DIVE = 4
"""Partial placements per task of the first dive."""
COOLING = 300 // SLOW
"""Steps of the annealing that follows."""
HOT, COLD = 0.1, 1e-3
"""Its temperatures, as differences of the composite."""
NEIGHBOURHOOD = 4
"""Tasks that are placed anew together, at most."""
LIMIT = 200
"""Partial placements for one neighbourhood."""
BREADTH = 12
"""Nodes tried for a task at each level of a neighbourhood's tree."""
FIRST, BATCH = 400 // SLOW, 200 // SLOW
"""Partial placements in neighbourhoods before the trees over all tasks; later between two looks at the clock."""
HOPEFUL = Caution(0.0, 0.9, 0.0, 0.0)
"""What the dive and neighbourhoods go by."""
TREES = (Caution(1.0, 1.0, 1.0, 0.9), Caution(1.0, 1.0, 0.6, 0.6), Caution(0.8, 1.0, 0.3, 0.3), HOPEFUL)
"""Trees over all tasks, ever less cautious; each may take half of what is left."""
DIAGNOSIS_S = 0.1
"""Time to find out why there is no place."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Bench:
    """One problem with all that compiled code needs to work on it."""

    view: Compact
    work: FillWork
    state: State
    walk: Walk
    tree: Tree

    @staticmethod
    def of(view: Compact, seed: int) -> Bench:
        return Bench(view, fill_work(view), new_state(view), new_walk(view, seed), new_tree(view))


class Search:
    """See the module."""

    name = "search"
    summary = "fast anytime search: a dive, annealing, then trees over a few tasks at a time or all of them"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        started = time.perf_counter()
        hindrance = obstacle(problem)
        if hindrance is not None:
            return Result(self.name, SearchTrace.of(problem).considered, reason=hindrance)
        view = compact(problem, candidates(problem, seed))
        bench = Bench.of(view, seed)
        _search(bench, None if time_limit_s is None else started + time_limit_s)
        if bench.state.fits[0]:
            return planned(self.name, problem, view, bench.state)
        deadline = time.perf_counter() + DIAGNOSIS_S
        # The walk that finds out why no place was found may itself find one.
        found, trace = greedy.search(problem, seed, deadline)
        if found is not None:
            return Result(self.name, trace.considered, *found)
        reason = explain(problem, trace, lambda other: greedy.search(other, seed, deadline))
        return Result(self.name, trace.considered, reason=reason)


SEARCH = Search()


def _search(bench: Bench, deadline: float | None, clock: Clock = time.perf_counter) -> None:
    """Leaves the best placement found in ``bench.state``."""
    view, work, state, walk, tree = bench.view, bench.work, bench.state, bench.walk, bench.tree
    tasks = len(view.fits)
    if not view.fits.any(axis=1).all():
        return
    order = task_order(view)
    install(view, work, state, np.argmax(view.fits * view.free[0], axis=1).astype(np.int64))
    tree.order[:] = order
    seen = rebuild(view, work, state, tree, HOPEFUL, tasks, DIVE * tasks, BREADTH)
    keep(state, walk)
    anneal(view, work, state, walk, COOLING, HOT, COLD, 0, COOLING)
    back_to_best(view, work, state, walk)
    settled = False
    began = clock()
    first = improve(view, work, state, walk, tree, HOPEFUL, min(NEIGHBOURHOOD, tasks), LIMIT, BREADTH, FIRST)
    pace = first / max(clock() - began, 1e-9)
    seen += first
    for caution in TREES:
        limit = (BUDGET - seen if deadline is None else int((deadline - clock()) * pace)) // 2
        if limit <= 0:
            break
        tree.order[:] = order
        whole = rebuild(view, work, state, tree, caution, tasks, limit, len(view.nodes))
        seen += whole
        settled = whole < limit and caution is HOPEFUL
    if not settled:
        while seen < BUDGET if deadline is None else clock() < deadline:
            seen += improve(view, work, state, walk, tree, HOPEFUL, min(NEIGHBOURHOOD, tasks), LIMIT, BREADTH, BATCH)
    better_paths(view, work, state)
