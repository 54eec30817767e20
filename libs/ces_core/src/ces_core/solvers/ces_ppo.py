"""``ces-ppo``: the learned scheduler (thesis 4.2, here with a network for any number of nodes and tasks). A policy that
was trained by ``ces train ppo`` places the tasks; bandwidth is then settled as every solver of CES does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from ces_core.candidates import candidates
from ces_core.diagnosis import SearchTrace, obstacle
from ces_core.kernels.compact import compact
from ces_core.plan import Advice, Result
from ces_core.policy.decode import Board, Stuck, greedy
from ces_core.policy.draws import best_of
from ces_core.policy.onnx import SHIPPED, Policy, load_policy
from ces_core.problem import Problem
from ces_core.reason import Reason
from ces_core.solvers.finishing import planned

TEMPERATURE = 1.0
"""What plans are drawn at: as the policy was taught, in units of the regret that it expects."""


@cache
def shipped() -> Policy:
    """The policy that comes with the core. Raises PolicyError."""
    return load_policy(SHIPPED)


@dataclass(frozen=True)
class CesPpo:
    """See the module. ``samples`` 0: the best node at every step, else the best of that and of so many drawn plans.
    ``policy`` None: the shipped one, loaded at the first decision."""

    name: str
    summary: str
    samples: int = 0
    policy: Policy | None = None

    def using(self, file: Path | None) -> Self:
        return replace(self, policy=load_policy(file or SHIPPED))

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        """A time limit ends the drawing of plans; the first plan, a matter of milliseconds, is always looked for."""
        started = time.perf_counter()
        hindrance = obstacle(problem)
        if hindrance is not None:
            return Result(self.name, SearchTrace.of(problem).considered, reason=hindrance)
        policy = self.policy or shipped()
        view = compact(problem, candidates(problem, seed))
        found = greedy(view, policy.scores)
        if self.samples and (time_limit_s is None or time.perf_counter() - started < time_limit_s):
            drawn = best_of(view, policy.scores, self.samples, TEMPERATURE, np.random.default_rng(seed))
            found = _better(found, drawn)
        if isinstance(found, Stuck):
            return Result(self.name, SearchTrace.of(problem).considered, reason=_reason(problem, found))
        advice = advice_of(policy, problem, found, found.state.node_of.tolist())
        return replace(planned(self.name, problem, view, found.state), advice=advice)


CES_PPO = CesPpo("ces-ppo", "a learned policy, the best node at every step")
CES_PPO_64 = CesPpo("ces-ppo-64", "the same policy, the best of 64 plans drawn by its scores", samples=64)
LEARNED = (CES_PPO, CES_PPO_64)


def _better(found: Board | Stuck, drawn: Board | None) -> Board | Stuck:
    if drawn is None or (isinstance(found, Board) and found.state.score[0] >= drawn.state.score[0]):
        return found
    return drawn


def advice_of(policy: Policy, problem: Problem, board: Board, nodes: Sequence[int]) -> Advice:
    """What the policy said of the plan that puts task t on candidate ``nodes[t]``, on its way to that of ``board``."""
    odds = board.odds(nodes)
    return Advice(policy.version, {task.name: p for task, p in zip(problem.tasks, odds, strict=True)})


def _reason(problem: Problem, stuck: Stuck) -> Reason:
    """What the policy stumbled over; it proves nothing."""
    if stuck.crowded:
        return Reason("packing", proven=False, task=problem.tasks[stuck.task].name)
    return Reason("bandwidth-together", proven=False, resource="bandwidth")
