"""Solvers that place a job task by task by scores of its nodes, from a policy or a rule.

``imitation``: a policy trained to imitate a search. The idea is the thesis's (section 4.2), here with a network for any
number of nodes and tasks. ``lookahead``: the same without a policy; the difference is what was learned. Bandwidth is
computed as in every solver of CES.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from ces_core.learned.decoder import Board, Scorer, Stuck, by_cost, fortified, greedy
from ces_core.learned.policy import SHIPPED, Policy, load_policy
from ces_core.learned.sampling import best_of
from ces_core.model.plan import Advice, Result
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.placement.candidates import candidates
from ces_core.placement.view import ProblemView, problem_view
from ces_core.search.answer import planned
from ces_core.search.diagnosis import SearchTrace, obstacle
from ces_core.solver import refuse_goals

TEMPERATURE = 1.0
"""The sampling temperature the policy was trained with, in units of its expected regret."""
RULE_TEMPERATURE = 0.1
"""The rule's sampling temperature: the best on average of three that were tried (docs/learned.md)."""


@dataclass(frozen=True)
class Decoding:
    """How scores become a plan. ``fortified``: also consider whole plans seen during decoding. ``samples``: draw this
    many more plans, at ``temperature``, above 0."""

    fortified: bool = True
    samples: int = 0
    temperature: float = 0.0

    def of(self, view: ProblemView, scorer: Scorer, seed: int, until: float) -> Board | Stuck:
        """The best plan found. A time limit ends only the sampling; the first plan, a matter of milliseconds, is always
        made."""
        found = fortified(view, scorer) if self.fortified else greedy(view, scorer)
        if self.samples and time.perf_counter() < until:
            drawn = best_of(view, scorer, self.samples, self.temperature, np.random.default_rng(seed))
            found = _better(found, drawn)
        return found


def decoded(
    name: str, problem: Problem, scorer: Scorer, decoding: Decoding, seed: int, time_limit_s: float | None
) -> Result | tuple[Board, Result]:
    """The board and its plan, or the reason why there is none."""
    started = time.perf_counter()
    refuse_goals(name, problem)
    hindrance = obstacle(problem)
    if hindrance is not None:
        return Result(name, SearchTrace.of(problem).considered, reason=hindrance)
    view = problem_view(problem, candidates(problem, seed))
    found = decoding.of(view, scorer, seed, math.inf if time_limit_s is None else started + time_limit_s)
    if isinstance(found, Stuck):
        return Result(name, SearchTrace.of(problem).considered, reason=_reason(problem, found))
    return found, planned(name, problem, view, found.state)


def _better(found: Board | Stuck, drawn: Board | None) -> Board | Stuck:
    if drawn is None or (isinstance(found, Board) and found.state.score[0] >= drawn.state.score[0]):
        return found
    return drawn


def _reason(problem: Problem, stuck: Stuck) -> Reason:
    """The obstacle that the decoder met; it proves nothing."""
    if stuck.crowded:
        return Reason("packing", proven=False, task=problem.tasks[stuck.task].name)
    return Reason("bandwidth-together", proven=False, resource="bandwidth")


@dataclass(frozen=True)
class Lookahead:
    """Scores nodes by a fixed rule on the same features: see :func:`ces_core.learned.decoder.by_cost`."""

    name: str
    summary: str
    decoding: Decoding

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        """A time limit ends only the sampling of plans."""
        answer = decoded(self.name, problem, by_cost, self.decoding, seed, time_limit_s)
        return answer if isinstance(answer, Result) else answer[1]


LOOKAHEAD = (
    Lookahead("lookahead", "as imitation with a fixed rule in place of the policy", Decoding()),
    Lookahead("lookahead-64", "as imitation-64 with that rule", Decoding(samples=64, temperature=RULE_TEMPERATURE)),
)


@cache
def shipped() -> Policy:
    """The policy that comes with the core. Raises PolicyError."""
    return load_policy(SHIPPED)


@dataclass(frozen=True)
class PolicySolver:
    """The solver ``imitation``. ``policy`` None: the shipped one, loaded at the first decision."""

    name: str
    summary: str
    decoding: Decoding
    policy: Policy | None = None

    def using(self, file: Path | None) -> Self:
        return replace(self, policy=load_policy(file or SHIPPED))

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        """A time limit ends only the sampling of plans."""
        policy = self.policy or shipped()
        answer = decoded(self.name, problem, policy.scores, self.decoding, seed, time_limit_s)
        if isinstance(answer, Result):
            return answer
        found, result = answer
        return replace(result, advice=advice_of(policy, problem, found, found.state.node_of.tolist()))


IMITATION = PolicySolver(
    "imitation",
    "a policy taught to imitate a search: its best node at every step, or a better plan seen on the way",
    Decoding(),
)
IMITATION_GREEDY = PolicySolver(
    "imitation-greedy", "the same policy, its best node at every step and nothing else", Decoding(fortified=False)
)
IMITATION_64 = PolicySolver(
    "imitation-64",
    "the same policy, the best of 64 plans drawn by its scores",
    Decoding(samples=64, temperature=TEMPERATURE),
)
LEARNED = (IMITATION, IMITATION_GREEDY, IMITATION_64)


def advice_of(policy: Policy, problem: Problem, board: Board, nodes: Sequence[int]) -> Advice:
    """The policy's scores along the plan that puts task t on candidate ``nodes[t]``, starting from those of
    ``board``."""
    odds = board.odds(nodes)
    return Advice(policy.version, {task.name: p for task, p in zip(problem.tasks, odds, strict=True)})
