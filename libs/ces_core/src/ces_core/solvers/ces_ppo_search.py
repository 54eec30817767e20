"""``ces-ppo-search``: `search` that begins with learned plans.

Beside its own first dive it has quick learned ones, among nodes that are chosen by learned weights as well
(:mod:`ces_core.proposals`), and the plan of a policy where one is given and the time limit affords asking it. The best
of them is improved by placing a few tasks at a time anew, in learned ways, and the search goes on from there. Of itself
it asks no policy, and so needs no ONNX Runtime: with that of ``ces-ppo`` it came no further
(docs/benchmarks/warm-start.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np

from ces_core.kernels.anneal import keep
from ces_core.kernels.desk import return_to_best
from ces_core.kernels.state import State
from ces_core.plan import Result
from ces_core.policy.decode import Board, fortified
from ces_core.policy.onnx import Policy, load_policy
from ces_core.problem import FloatArray, Problem
from ces_core.proposals.dive import Diver
from ces_core.proposals.regions import rule_of
from ces_core.proposals.remake import remake
from ces_core.proposals.weights import shipped as weights
from ces_core.solvers.ces_ppo import advice_of
from ces_core.solvers.search import SLOW, Bench, Effort, Search
from ces_core.value.value import Value, shipped

DIVES = 4
"""Learned dives, each with another node for the first task, as long as each is better than all before it."""
LOST = 0.003
"""They are made where the first plan loses more of the composite than this by unsatisfied flows: where it loses less,
the nodes' balance is all that is left to improve, and time serves the search better."""
AMPLE_S = 4e-5
"""With more time than this for each task on each node, too (docs/benchmarks/warm-start.md)."""
SMALL = 500
"""Where there are fewer than so many of these, time is ample so much sooner: even half a millisecond serves the search
better than a learned plan does."""
DIVING = 0.5
"""Share of the time that all but the first may take."""
ASKING = 0.1
"""Share of the time that the policy may take, or it is not asked."""
TASK_S, NODE_S = 1.5e-4, 1.2e-5
"""What it takes about, for a task, and for a task and a node."""
MANY = 1e10
"""With fewer placements of all tasks than this, the trees of `search` come far enough for it to need no other plan."""
REMADE = 14_000 // SLOW
"""Tasks that are placed anew at most."""
REMAKING = 0.9
"""Share of the time that this may take."""


@dataclass(frozen=True)
class CesPpoSearch:
    """See the module. ``policy`` None: none is asked. ``value``: see Search."""

    name: str
    summary: str
    policy: Policy | None = None
    value: Callable[[], Value] | None = None

    def using(self, file: Path | None) -> Self:
        return self if file is None else replace(self, policy=load_policy(file))

    def foreseeing(self) -> Self:
        """The same with the shipped value."""
        return self if self.value is not None else replace(self, value=shipped)

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        boards: list[Board] = []
        search = Search(self.name, self.summary, rule_of(weights()), self.value)
        propose = partial(self._propose, boards)
        result = search.solve(problem, seed=seed, time_limit_s=time_limit_s, propose=propose)
        if self.policy is None or not boards or result.plan is None:
            return result
        index = problem.cluster.topology.node_index
        nodes = [index[result.plan.assignments[task.name]] for task in problem.tasks]
        at = np.searchsorted(boards[0].view.nodes, nodes).tolist()
        return replace(result, advice=advice_of(self.policy, problem, boards[0], at))

    def _propose(self, boards: list[Board], problem: Problem, bench: Bench, effort: Effort) -> None:
        """Leaves the policy's board, if it was asked and came to a plan, in ``boards``."""
        tasks, nodes = len(problem.tasks), int(bench.view.fits.any(axis=0).sum())
        lost = _lost(bench)
        if lost == math.inf or (lost > LOST and effort.seconds() <= _ample_s(tasks * nodes)):
            _dive(Diver.of(problem, bench.view, weights()), bench, effort)
        if self.policy is not None and tasks * (TASK_S + NODE_S * nodes) <= ASKING * effort.seconds():
            found = fortified(bench.view, self.policy.scores)
            if isinstance(found, Board):
                boards.append(found)
                _offer(found.state, bench)
        if float(np.log(np.maximum(bench.view.fits.sum(axis=1), 1)).sum()) > math.log(MANY):
            _remake(weights().remake, bench, effort)


CES_PPO_SEARCH = CesPpoSearch(
    "ces-ppo-search", "search that begins with quick learned plans, and with a policy's where one is given"
)


def _ample_s(choices: int) -> float:
    """``choices``: of a task and a node."""
    return AMPLE_S * choices * min(choices / SMALL, 1.0)


def _lost(bench: Bench) -> float:
    """What unsatisfied flows take from the composite of the first plan; infinite where it does not fit."""
    view, state = bench.view, bench.state
    if not state.fits[0]:
        return math.inf
    span = view.high - view.low
    lost = np.divide(view.high - state.rates, span, out=np.zeros_like(span), where=span > 0)
    return 0.5 * float(lost.sum()) / max(len(lost), 1)


def _dive(diver: Diver, bench: Bench, effort: Effort) -> None:
    until = (1.0 - DIVING) * effort.left()
    for skip in range(DIVES):
        if skip and effort.left() < until:
            break
        if diver.plan(skip) is not None and not _offer(diver.state, bench):
            break


def _remake(habits: FloatArray, bench: Bench, effort: Effort) -> None:
    return_to_best(bench.desk)
    if bench.state.fits[0]:
        until = (1.0 - REMAKING) * effort.left()
        effort.spend(lambda limit: remake(bench.desk, habits, limit), most=REMADE, until=until)


def _offer(state: State, bench: Bench) -> bool:
    """Whether this is the best so far."""
    if not state.fits[0] or state.score[0] <= bench.walk.best_score[0]:
        return False
    keep(state, bench.walk)
    return True
