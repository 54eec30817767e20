"""Anytime search in compiled code: greedy construction, simulated annealing, large neighbourhood search, tree search.

All steps work on few candidates (:mod:`ces_core.placement.candidates`) and on flat arrays
(:mod:`ces_core.placement.view`). The tree search over all tasks ends early where nothing promising is left, as is usual
with ten nodes; otherwise neighbourhoods are improved, with perturbations where that stalls, until time or budget is
used up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.placement.candidates import BY_HAND, Rule, candidates
from ces_core.placement.fill import FillWork
from ces_core.placement.path_choice import better_paths
from ces_core.placement.state import State
from ces_core.placement.value import Value, shipped
from ces_core.placement.view import ProblemView, problem_view
from ces_core.search import greedy
from ces_core.search.annealing import SearchMemory, keep, random_of
from ces_core.search.answer import planned
from ces_core.search.diagnosis import SearchTrace, explain, obstacle
from ces_core.search.effort import SLOW, Clock, Effort
from ces_core.search.goals.solver import search_with_goals
from ces_core.search.tree import PruningWeights, Tree
from ces_core.search.workspace import (
    Workspace,
    improve_neighbourhoods,
    reset_tree,
    return_to_best,
    run_annealing,
    search_tree,
    workspace_for,
    worst_fit_start,
)

CONSTRUCTIONS = 4
"""Maximum number of greedy constructions, each of as many partial placements as there are tasks."""
CONSTRUCTION_BREADTH = 12
"""Nodes tried per task in them."""
COOLING = 300 // SLOW
"""Steps of the annealing that follows."""
COOLED_S = 5e-5
"""Below this time per task and flow, neighbourhoods work better than annealing."""
HOT, COLD = 0.1, 1e-3
"""Temperatures of the annealing, in units of the composite."""
NEIGHBOURHOOD = 4
"""Maximum number of tasks per neighbourhood."""
LIMIT = 60
"""Partial placements per neighbourhood."""
BREADTH = 6
"""Nodes tried per level of a neighbourhood's tree."""
PATIENCE = 25
"""Consecutive neighbourhoods without improvement before a perturbation."""
FIRST, FIRST_EACH = 400 // SLOW, 5 / SLOW
"""Partial placements in neighbourhoods before the tree search over all tasks: the minimum, and the number per pair of
task and node."""
LARGE, FIRST_LARGE = 1e7, 3000 // SLOW
"""With more placements than this the tree search takes longer than milliseconds. Neighbourhoods then get this larger
budget, unless the plan lacks bandwidth."""
KEPT = 0.3
"""Minimum share of the remaining time kept for the tree search."""
OPTIMISTIC = PruningWeights(0.0, 0.9, 0.0, 0.0)
"""Pruning weights of greedy construction and neighbourhoods."""
TREES = (
    PruningWeights(1.0, 1.0, 1.0, 0.9),
    PruningWeights(1.0, 1.0, 0.6, 0.6),
    PruningWeights(0.8, 1.0, 0.3, 0.3),
    OPTIMISTIC,
)
"""Pruning weights of successive tree searches over all tasks, from tight to optimistic; each may take half of the
remaining time."""
CARD_NODES = 8
"""Candidates that lose least of what is left over of cards, and one for each task."""
DIAGNOSIS_S = 0.1
"""Time for each of up to three searches that diagnose an infeasible job."""


@dataclass(frozen=True)
class Bench:
    """One problem with all arrays that compiled code works on."""

    view: ProblemView
    work: FillWork
    state: State
    walk: SearchMemory
    tree: Tree
    workspace: Workspace
    """All of these, for compiled code."""

    @staticmethod
    def of(view: ProblemView, seed: int) -> Bench:
        return Bench(view, *workspace_for(view, random_of(seed)))


Propose = Callable[[Problem, Bench, Effort], None]
"""Offers alternative start plans; those better than the best in ``bench.walk`` are stored there."""


@dataclass(frozen=True)
class Search:
    """Solver of this module. ``rule`` chooses the candidates in large clusters. ``value`` gives the value of the
    capacity left behind; None: no value."""

    name: str = "search"
    summary: str = (
        "fast anytime search: greedy start, annealing, then tree search over a few tasks at a time or all of them; "
        "knows deadlines, energy and reliability"
    )
    rule: Rule = BY_HAND
    value: Callable[[], Value] | None = None

    def with_lookahead(self) -> Self:
        """The same solver with the shipped value of residual capacity."""
        return self if self.value is not None else replace(self, value=shipped)

    def solve(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        time_limit_s: float | None = None,
        propose: Propose | None = None,
        dives: Callable[[ProblemView], int] = lambda _: CONSTRUCTIONS,
    ) -> Result:
        """``propose`` offers further start plans, after so many greedy constructions at most as ``dives`` says."""
        started = time.perf_counter()
        deadline = started + time_limit_s if time_limit_s is not None and math.isfinite(time_limit_s) else None
        if problem.has_goals:
            without = partial(self.solve, seed=seed, time_limit_s=0.0)
            return search_with_goals(self.name, problem, seed, deadline, self.rule, without)
        hindrance = obstacle(problem)
        if hindrance is not None:
            return Result(self.name, SearchTrace.of(problem).considered, reason=hindrance)
        view = self._view(problem, seed)
        if self.value is not None:
            view = self.value().on(problem, view)
        bench = Bench.of(view, seed)
        _search(bench, deadline, propose=None if propose is None else partial(propose, problem), dives=dives(view))
        if bench.state.fits[0]:
            return planned(self.name, problem, view, bench.state)
        # The diagnosis itself may find a plan.
        found, trace = greedy.search(problem, seed, time.perf_counter() + DIAGNOSIS_S)
        if found is not None:
            return Result(self.name, trace.considered, *found)
        reason = explain(problem, trace, lambda other: _examine(other, seed))
        return Result(self.name, trace.considered, reason=reason)

    def _view(self, problem: Problem, seed: int) -> ProblemView:
        """Nodes on which little is lost of what is left over of cards are among the candidates."""
        chosen, value = candidates(problem, seed, self.rule), problem.card_value
        if value is None:
            return problem_view(problem, chosen)
        homes = problem.homes[problem.demand[:, 2] > 0].any(axis=0)  # of the tasks that want GPUs
        best = value.best(homes, CARD_NODES + len(problem.tasks))
        view = problem_view(problem, np.union1d(chosen, best))
        return view._replace(cards=value.change[view.nodes], per_card=value.per_card)


def _examine(problem: Problem, seed: int) -> tuple[object | None, SearchTrace]:
    """Whether a variation of a problem can be placed. The first steps are always run, however little time is left: a
    placement missed for lack of time would blame the wrong constraint."""
    bench = Bench.of(problem_view(problem, candidates(problem, seed)), seed)
    _search(bench, time.perf_counter())
    if bench.state.fits[0]:
        return bench, SearchTrace.of(problem)
    return greedy.search(problem, seed, time.perf_counter() + DIAGNOSIS_S)


SEARCH = Search()


def with_start_plan(view: ProblemView) -> Bench:
    """A bench with the greedy start plan of the search, if there is one, which ``walk`` stores as the best."""
    bench = Bench.of(view, 0)
    _construct(bench, lambda: False)
    keep(bench.state, bench.walk)
    return bench


def first_plan(view: ProblemView) -> float | None:
    """Score of the search's greedy start plan; None where it finds none."""
    state = with_start_plan(view).state
    return float(state.score[0]) if state.fits[0] else None


def _construct(bench: Bench, late: Callable[[], bool], dives: int = CONSTRUCTIONS) -> None:
    """Builds the first plan and, unless it is late, a second one; more while none is feasible, ``dives`` at most."""
    workspace, state, tasks = bench.workspace, bench.state, len(bench.view.fits)
    worst_fit_start(workspace)
    reset_tree(workspace)
    for number in range(dives):
        seen = search_tree(workspace, OPTIMISTIC, tasks, tasks, CONSTRUCTION_BREADTH)
        if seen < tasks or (state.fits[0] and (number > 0 or late())):
            break


def _search(
    bench: Bench,
    deadline: float | None,
    clock: Clock = time.perf_counter,
    propose: Callable[[Bench, Effort], None] | None = None,
    dives: int = CONSTRUCTIONS,
) -> None:
    """Leaves the best placement found in ``bench.state``."""
    view, state, workspace = bench.view, bench.state, bench.workspace
    tasks = len(view.fits)
    if not view.fits.any(axis=1).all():
        return
    effort = Effort(deadline, clock)

    def whole(pruning: PruningWeights) -> Callable[[int], int]:
        reset_tree(workspace)
        return lambda limit: search_tree(workspace, pruning, tasks, limit, len(view.nodes))

    def parts(limit: int) -> int:
        return improve_neighbourhoods(workspace, OPTIMISTIC, min(NEIGHBOURHOOD, tasks), LIMIT, BREADTH, PATIENCE, limit)

    _construct(bench, lambda: effort.left() <= 0, dives)
    keep(state, bench.walk)
    if propose is not None:
        propose(bench, effort)
        return_to_best(workspace)
    cooled = 0

    def cooling(limit: int) -> int:
        nonlocal cooled
        cooled += limit
        return run_annealing(workspace, COOLING, HOT, COLD, cooled - limit, cooled)

    if deadline is None or not state.fits[0] or effort.left() > COOLED_S * (tasks + len(view.low)):
        effort.spend(cooling, maximum=COOLING)
        return_to_best(workspace)
    effort.spend(parts, maximum=_first(view, state), until=KEPT * effort.left())
    return_to_best(workspace)
    settled = False
    for pruning in TREES:
        half = effort.left() / 2
        effort.spend(whole(pruning), until=half)
        settled = pruning is OPTIMISTIC and bench.tree.level[0] < 0 and effort.left() > half
    if not settled:
        keep(state, bench.walk)
        effort.spend(parts)
        return_to_best(workspace)
    better_paths(view, bench.work, state)


def _first(view: ProblemView, state: State) -> int:
    """Partial placements in neighbourhoods before the tree search over all tasks."""
    choices = view.fits.sum(axis=1)
    first = max(FIRST, int(FIRST_EACH * choices.sum()))
    if state.fits[0] and (state.rates >= view.high).all() and np.log(choices).sum() > math.log(LARGE):
        return max(first, FIRST_LARGE)
    return first
