"""``search-learned``: `search` from learned start plans.

Besides search's own greedy start there are learned ones, among nodes that are also chosen by learned weights
(:mod:`ces_core.learned.start`), and the plan of a policy if one is given and the time limit allows asking it. The best
is improved by learned ruin and recreate, and the search goes on from there. By default no policy is asked, so ONNX
Runtime is not needed: that of ``imitation`` brought no improvement (docs/benchmarks/warm-start.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np

from ces_core.learned.decoder import Board, fortified
from ces_core.learned.policy import Policy, load_policy
from ces_core.learned.policy_solvers import advice_of
from ces_core.learned.start.greedy import GreedyConstruction
from ces_core.learned.start.nearness import APART, NOWHERE, flows_cost, hops_of
from ces_core.learned.start.regions import rule_of
from ces_core.learned.start.ruin_and_recreate import TEMPERATURE, heat_of, ruin_and_recreate
from ces_core.learned.start.weights import HABITS
from ces_core.learned.start.weights import shipped as weights
from ces_core.model.plan import Result
from ces_core.model.problem import FloatArray, Problem
from ces_core.placement.state import State
from ces_core.placement.value import Value, shipped
from ces_core.placement.view import ProblemView
from ces_core.search.annealing import keep
from ces_core.search.effort import SLOW, Effort
from ces_core.search.solver import CONSTRUCTIONS as DIVES
from ces_core.search.solver import Bench, Search
from ces_core.search.workspace import return_to_best

CONSTRUCTIONS = 4
"""At most this many learned constructions, each with another node for the first task, as long as each improves on all
before."""
LOST = 0.003
"""They are made if the first plan loses more of the composite than this by unsatisfied flows. Below that only the
nodes' balance is left to improve, and search makes better use of the time."""
AMPLE_S = 4e-5
"""And only up to this time limit per pair of task and node (docs/benchmarks/warm-start.md)."""
SMALL = 500
"""With fewer pairs than this the time limit above shrinks in proportion: search then does better than a learned plan
within half a millisecond."""
CONSTRUCTION_SHARE = 0.5
"""The share of the time that all but the first construction may take."""
POLICY_SHARE = 0.1
"""The share of the time that the policy may take; otherwise it is not asked."""
TASK_S, NODE_S = 1.5e-4, 1.2e-5
"""Estimated time of the policy per task, and per pair of task and node."""
MANY = 1e10
"""With fewer possible placements than this, the trees of `search` need no other plan."""
RECREATED_TASKS = 14_000 // SLOW
"""At most this many tasks are placed again by ruin and recreate; under a time limit on a sparse network as many as the
time allows."""
RECREATE_SHARE = 0.9
"""The share of the time that this may take."""
FAR = 3.0
"""With more hops than this between two candidates, on average, a network counts as sparse. Under a time limit, nodes
are then listed by nearness as well, and ruin and recreate cools (docs/benchmarks/sparse.md)."""
SPARSE = {"breadth": 20.0, "neighbour": 0.5}
"""Habits that differ there."""
HOT, COOLED = 1.0, 0.2
"""The heat that it begins with there, in units of what a flow of the first plan costs on average, and the share of this
that is left in the end."""
WIDE_S = 0.01
"""From this time limit on, regions of a large cluster are larger."""


@dataclass(frozen=True)
class LearnedStartSearch:
    """The solver ``search-learned``. ``policy`` None: none is asked. ``value``: see Search."""

    name: str
    summary: str
    policy: Policy | None = None
    value: Callable[[], Value] | None = None

    def using(self, file: Path | None) -> Self:
        return self if file is None else replace(self, policy=load_policy(file))

    def with_lookahead(self) -> Self:
        """The same solver with the shipped value."""
        return self if self.value is not None else replace(self, value=shipped)

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        boards: list[Board] = []
        limit_s = math.inf if time_limit_s is None else time_limit_s
        search = Search(self.name, self.summary, rule_of(weights(), WIDE_S <= limit_s < math.inf), self.value)
        propose, dives = partial(self._propose, boards), partial(dives_of, limit_s < math.inf)
        result = search.solve(problem, seed=seed, time_limit_s=time_limit_s, propose=propose, dives=dives)
        if self.policy is None or not boards or result.plan is None:
            return result
        index = problem.cluster.topology.node_index
        nodes = [index[result.plan.assignments[task.name]] for task in problem.tasks]
        at = np.searchsorted(boards[0].view.nodes, nodes).tolist()
        return replace(result, advice=advice_of(self.policy, problem, boards[0], at))

    def _propose(self, boards: list[Board], problem: Problem, bench: Bench, effort: Effort) -> None:
        """Offer learned plans to the search. The policy's board is added to ``boards`` if it was asked and found a
        plan."""
        tasks, nodes = len(problem.tasks), int(bench.view.fits.any(axis=0).sum())
        lost = _lost(bench)
        if lost == math.inf or (lost > LOST and effort.seconds() <= _ample_s(tasks * nodes)):
            _construct(GreedyConstruction.of(problem, bench.view, weights()), bench, effort)
        if self.policy is not None and tasks * (TASK_S + NODE_S * nodes) <= POLICY_SHARE * effort.seconds():
            found = fortified(bench.view, self.policy.scores)
            if isinstance(found, Board):
                boards.append(found)
                _offer(found.state, bench)
        if _has_many(bench.view):
            _ruin_and_recreate(weights().remake, bench, effort)


SEARCH_LEARNED = LearnedStartSearch(
    "search-learned", "search that begins with quick learned plans, and with a policy's where one is given"
)


def _has_many(view: ProblemView) -> bool:
    """Whether there are many possible placements."""
    return float(np.log(np.maximum(view.fits.sum(axis=1), 1)).sum()) > math.log(MANY)


def _are_far(hops: FloatArray) -> bool:
    near = hops[hops < APART / 2]  # nodes that are cut off say nothing of the others
    return len(near) > 0 and float(near.mean()) > FAR


def dives_of(timed: bool, view: ProblemView) -> int:
    """Greedy constructions: one where placing tasks again gains more in the same time."""
    return 1 if timed and _has_many(view) and _are_far(hops_of(view)) else DIVES


def _ample_s(choices: int) -> float:
    """The time limit above which learned constructions are not worth it. ``choices``: pairs of a task and a node."""
    return AMPLE_S * choices * min(choices / SMALL, 1.0)


def _lost(bench: Bench) -> float:
    """The part of the composite that unsatisfied flows of the first plan lose; infinite if the plan does not fit."""
    view, state = bench.view, bench.state
    if not state.fits[0]:
        return math.inf
    span = view.high - view.low
    lost = np.divide(view.high - state.rates, span, out=np.zeros_like(span), where=span > 0)
    return 0.5 * float(lost.sum()) / max(len(lost), 1)


def _construct(construction: GreedyConstruction, bench: Bench, effort: Effort) -> None:
    until = (1.0 - CONSTRUCTION_SHARE) * effort.left()
    for skip in range(CONSTRUCTIONS):
        if skip and effort.left() < until:
            break
        if construction.plan(skip) is not None and not _offer(construction.state, bench):
            break


def _ruin_and_recreate(habits: FloatArray, bench: Bench, effort: Effort) -> None:
    return_to_best(bench.workspace)
    left = effort.left()
    if not bench.state.fits[0] or left <= 0:
        return
    until = (1.0 - RECREATE_SHARE) * left
    hops = NOWHERE if math.isinf(effort.seconds()) else hops_of(bench.view)
    if not len(hops) or not _are_far(hops):
        effort.spend(
            lambda limit: ruin_and_recreate(bench.workspace, habits, NOWHERE, limit),
            maximum=RECREATED_TASKS,
            until=until,
        )
        return
    habits = habits.copy()
    for name, worth in SPARSE.items():
        habits[HABITS.index(name)] = worth
    first = HOT * flows_cost(bench.view, bench.state) / max(len(bench.view.low), 1)

    def cooling(limit: int) -> int:
        gone = 1.0 - (effort.left() - until) / (left - until)
        habits[TEMPERATURE] = heat_of(bench.view, first * COOLED**gone)
        return ruin_and_recreate(bench.workspace, habits, hops, limit)

    effort.spend(cooling, until=until)


def _offer(state: State, bench: Bench) -> bool:
    """Offer a plan to the walk; returns whether it is the best so far."""
    if not state.fits[0] or state.score[0] <= bench.walk.best_score[0]:
        return False
    keep(state, bench.walk)
    return True
