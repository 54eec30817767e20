"""Anytime search in compiled code: a dive, a short annealing, a few tasks placed anew, and whole trees if time allows.

Everything works on few candidates (:mod:`ces_core.candidates`) and on flat arrays (:mod:`ces_core.kernels.compact`).
The tree over all tasks ends by itself where nothing promising is left, which at ten nodes it mostly does; otherwise
neighbourhoods are improved, with kicks where that stalls, until time or budget is used up.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from ces_core.candidates import BY_HAND, Rule, candidates
from ces_core.diagnosis import SearchTrace, explain, obstacle
from ces_core.kernels.anneal import Walk, keep, random_of
from ces_core.kernels.compact import Compact, compact
from ces_core.kernels.desk import Desk, begin, cool, desk_for, grow, mend, return_to_best, spread_out
from ces_core.kernels.fill import FillWork
from ces_core.kernels.improve import better_paths
from ces_core.kernels.jit import COMPILED
from ces_core.kernels.rebuild import Caution, Tree
from ces_core.kernels.state import State
from ces_core.plan import Result
from ces_core.problem import Problem
from ces_core.solvers import greedy
from ces_core.solvers.finishing import planned
from ces_core.value.value import Value, shipped

SLOW = 1 if COMPILED else 20
"""By how much less is looked at where nothing is compiled."""
BUDGET = 20_000 // SLOW
"""Partial placements that are looked at where no time limit is given."""
DIVES = 4
"""So many dives at most, each of as many partial placements as there are tasks."""
DIVE_BREADTH = 12
"""Nodes tried for a task in them."""
COOLING = 300 // SLOW
"""Steps of the annealing that follows."""
COOLED_S = 5e-5
"""With less time than this for each task and each flow, neighbourhoods serve better than annealing."""
HOT, COLD = 0.1, 1e-3
"""Its temperatures, as differences of the composite."""
NEIGHBOURHOOD = 4
"""Tasks that are placed anew together, at most."""
LIMIT = 60
"""Partial placements for one neighbourhood."""
BREADTH = 6
"""Nodes tried for a task at each level of a neighbourhood's tree."""
PATIENCE = 25
"""Neighbourhoods in a row without gain, after which a few tasks are kicked elsewhere."""
FIRST, FIRST_EACH = 400 // SLOW, 5 / SLOW
"""Partial placements in neighbourhoods before the trees over all tasks: at least, and per task and node for it."""
LARGE, FIRST_LARGE = 1e7, 3000 // SLOW
"""With more placements than this the trees do not end within milliseconds. Then neighbourhoods go on for so long,
unless the plan lacks bandwidth."""
KEPT = 0.3
"""Of what is left then, the trees get at least this share."""
HOPEFUL = Caution(0.0, 0.9, 0.0, 0.0)
"""What the dive and neighbourhoods go by."""
TREES = (Caution(1.0, 1.0, 1.0, 0.9), Caution(1.0, 1.0, 0.6, 0.6), Caution(0.8, 1.0, 0.3, 0.3), HOPEFUL)
"""Trees over all tasks, ever less cautious; each may take half of what is left."""
SLICE_S = 0.001
"""About so long compiled code works between two looks at the clock."""
PACE = 20_000.0 / SLOW
"""Partial placements per second, before it is known."""
DIAGNOSIS_S = 0.1
"""Time for each of up to three searches that find out why there is no place."""

Clock = Callable[[], float]


class Effort:
    """What is left to a search: time where there is a deadline, else partial placements."""

    def __init__(self, deadline: float | None, clock: Clock) -> None:
        self._deadline, self._clock = deadline, clock
        self._budget = BUDGET
        self._pace = PACE

    def left(self) -> float:
        """Seconds, or partial placements."""
        return self._budget if self._deadline is None else self.seconds()

    def seconds(self) -> float:
        """Infinite without a deadline."""
        return math.inf if self._deadline is None else self._deadline - self._clock()

    def spend(self, work: Callable[[int], int], *, most: int = sys.maxsize, until: float = 0.0) -> int:
        """Has ``work`` look at so many partial placements, a slice at a time, until it has seen ``most`` in all, less
        than ``until`` is left or it finds nothing more to see. Returns how many it saw."""
        seen = 0
        while seen < most and (left := self.left() - until) > 0:
            slice_ = left if self._deadline is None else min(left, SLICE_S) * self._pace
            limit = max(1, min(int(slice_), most - seen))
            began = self._clock()
            found = work(limit)
            seen += found
            self._budget -= found
            if found:
                self._pace = found / max(self._clock() - began, 1e-9)
            if found < limit:
                break
        return seen


@dataclass(frozen=True)
class Bench:
    """One problem with all that compiled code needs to work on it."""

    view: Compact
    work: FillWork
    state: State
    walk: Walk
    tree: Tree
    desk: Desk
    """All of these, for compiled code."""

    @staticmethod
    def of(view: Compact, seed: int) -> Bench:
        return Bench(view, *desk_for(view, random_of(seed)))


Propose = Callable[[Problem, Bench, Effort], None]
"""Has other plans to begin with, and leaves those with the walk that are better than what it remembers."""


@dataclass(frozen=True)
class Search:
    """See the module. ``rule``: which nodes of a large cluster are looked at. ``value`` gives what the room that a
    decision leaves behind is worth; None: nothing."""

    name: str = "search"
    summary: str = "fast anytime search: a dive, annealing, then trees over a few tasks at a time or all of them"
    rule: Rule = BY_HAND
    value: Callable[[], Value] | None = None

    def foreseeing(self) -> Self:
        """The same with the shipped value."""
        return self if self.value is not None else replace(self, value=shipped)

    def solve(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        time_limit_s: float | None = None,
        propose: Propose | None = None,
    ) -> Result:
        started = time.perf_counter()
        hindrance = obstacle(problem)
        if hindrance is not None:
            return Result(self.name, SearchTrace.of(problem).considered, reason=hindrance)
        view = compact(problem, candidates(problem, seed, self.rule))
        if self.value is not None:
            view = self.value().on(problem, view)
        bench = Bench.of(view, seed)
        deadline = started + time_limit_s if time_limit_s is not None and math.isfinite(time_limit_s) else None
        _search(bench, deadline, propose=None if propose is None else partial(propose, problem))
        if bench.state.fits[0]:
            return planned(self.name, problem, view, bench.state)
        # The walk that finds out why no place was found may itself find one.
        found, trace = greedy.search(problem, seed, time.perf_counter() + DIAGNOSIS_S)
        if found is not None:
            return Result(self.name, trace.considered, *found)
        reason = explain(problem, trace, lambda other: _examine(other, seed))
        return Result(self.name, trace.considered, reason=reason)


def _examine(problem: Problem, seed: int) -> tuple[object | None, SearchTrace]:
    """Whether a variation of a problem has a place. The first steps answer mostly, however little time there is: what
    is found too late would put the blame on the wrong constraint."""
    bench = Bench.of(compact(problem, candidates(problem, seed)), seed)
    _search(bench, time.perf_counter())
    if bench.state.fits[0]:
        return bench, SearchTrace.of(problem)
    return greedy.search(problem, seed, time.perf_counter() + DIAGNOSIS_S)


SEARCH = Search()


def begun(view: Compact) -> Bench:
    """With the plan that a search begins with, if it has one, which the walk remembers."""
    bench = Bench.of(view, 0)
    _dive(bench, lambda: False)
    keep(bench.state, bench.walk)
    return bench


def first_plan(view: Compact) -> float | None:
    """What the plan is worth that a search begins with; None where it has none."""
    state = begun(view).state
    return float(state.score[0]) if state.fits[0] else None


def _dive(bench: Bench, late: Callable[[], bool]) -> None:
    """The first plan, and one more if it is not late; more while none fits."""
    desk, state, tasks = bench.desk, bench.state, len(bench.view.fits)
    spread_out(desk)
    begin(desk)
    for number in range(DIVES):
        seen = grow(desk, HOPEFUL, tasks, tasks, DIVE_BREADTH)
        if seen < tasks or (state.fits[0] and (number > 0 or late())):
            break


def _search(
    bench: Bench,
    deadline: float | None,
    clock: Clock = time.perf_counter,
    propose: Callable[[Bench, Effort], None] | None = None,
) -> None:
    """Leaves the best placement found in ``bench.state``."""
    view, state, desk = bench.view, bench.state, bench.desk
    tasks = len(view.fits)
    if not view.fits.any(axis=1).all():
        return
    effort = Effort(deadline, clock)

    def whole(caution: Caution) -> Callable[[int], int]:
        begin(desk)
        return lambda limit: grow(desk, caution, tasks, limit, len(view.nodes))

    def parts(limit: int) -> int:
        return mend(desk, HOPEFUL, min(NEIGHBOURHOOD, tasks), LIMIT, BREADTH, PATIENCE, limit)

    _dive(bench, lambda: effort.left() <= 0)
    keep(state, bench.walk)
    if propose is not None:
        propose(bench, effort)
        return_to_best(desk)
    cooled = 0

    def cooling(limit: int) -> int:
        nonlocal cooled
        cooled += limit
        return cool(desk, COOLING, HOT, COLD, cooled - limit, cooled)

    if deadline is None or not state.fits[0] or effort.left() > COOLED_S * (tasks + len(view.low)):
        effort.spend(cooling, most=COOLING)
        return_to_best(desk)
    effort.spend(parts, most=_first(view, state), until=KEPT * effort.left())
    return_to_best(desk)
    settled = False
    for caution in TREES:
        half = effort.left() / 2
        effort.spend(whole(caution), until=half)
        settled = caution is HOPEFUL and bench.tree.level[0] < 0 and effort.left() > half
    if not settled:
        keep(state, bench.walk)
        effort.spend(parts)
        return_to_best(desk)
    better_paths(view, bench.work, state)


def _first(view: Compact, state: State) -> int:
    """Partial placements in neighbourhoods before the trees over all tasks."""
    choices = view.fits.sum(axis=1)
    first = max(FIRST, int(FIRST_EACH * choices.sum()))
    if state.fits[0] and (state.rates >= view.high).all() and np.log(choices).sum() > math.log(LARGE):
        return max(first, FIRST_LARGE)
    return first
