"""``ces-ppo``: the learned scheduler (thesis 4.2, here with a network for any number of nodes and tasks). A policy that
was trained by ``ces train ppo`` places the tasks; bandwidth is then settled as every solver of CES does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Self

from ces_core.plan import Advice, Result
from ces_core.policy.decode import Board
from ces_core.policy.onnx import SHIPPED, Policy, load_policy
from ces_core.problem import Problem
from ces_core.solvers.decoding import Decoding, decoded

TEMPERATURE = 1.0
"""What plans are drawn at: as the policy was taught, in units of the regret that it expects."""
DRAWN = Decoding(samples=64, temperature=TEMPERATURE)


@cache
def shipped() -> Policy:
    """The policy that comes with the core. Raises PolicyError."""
    return load_policy(SHIPPED)


@dataclass(frozen=True)
class CesPpo:
    """See the module. ``policy`` None: the shipped one, loaded at the first decision."""

    name: str
    summary: str
    decoding: Decoding
    policy: Policy | None = None

    def using(self, file: Path | None) -> Self:
        return replace(self, policy=load_policy(file or SHIPPED))

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        """A time limit ends the drawing of plans only."""
        policy = self.policy or shipped()
        answer = decoded(self.name, problem, policy.scores, self.decoding, seed, time_limit_s)
        if isinstance(answer, Result):
            return answer
        found, result = answer
        return replace(result, advice=advice_of(policy, problem, found, found.state.node_of.tolist()))


CES_PPO = CesPpo(
    "ces-ppo", "a learned policy, the best node at every step, or a better plan seen on the way", Decoding()
)
CES_PPO_GREEDY = CesPpo("ces-ppo-greedy", "the same policy, the best node at every step", Decoding(fortified=False))
CES_PPO_64 = CesPpo("ces-ppo-64", "the same policy, the best of 64 plans drawn by its scores", DRAWN)
LEARNED = (CES_PPO, CES_PPO_GREEDY, CES_PPO_64)


def advice_of(policy: Policy, problem: Problem, board: Board, nodes: Sequence[int]) -> Advice:
    """What the policy said of the plan that puts task t on candidate ``nodes[t]``, on its way to that of ``board``."""
    odds = board.odds(nodes)
    return Advice(policy.version, {task.name: p for task, p in zip(problem.tasks, odds, strict=True)})
