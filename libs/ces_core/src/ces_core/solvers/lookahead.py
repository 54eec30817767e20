"""``lookahead``: places a job step by step as ``ces-ppo`` does, without a policy. What is between them is learned."""

from __future__ import annotations

from dataclasses import dataclass

from ces_core.plan import Result
from ces_core.policy.decode import by_cost
from ces_core.problem import Problem
from ces_core.solvers.decoding import Decoding, decoded

RULE_TEMPERATURE = 0.1
"""What the rule's are drawn at: the best in the mean of three that were tried (docs/learned.md)."""


@dataclass(frozen=True)
class Lookahead:
    """Nodes are scored by a fixed rule from the same looks ahead: see :func:`ces_core.policy.decode.by_cost`."""

    name: str
    summary: str
    decoding: Decoding

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        """A time limit ends the drawing of plans only."""
        answer = decoded(self.name, problem, by_cost, self.decoding, seed, time_limit_s)
        return answer if isinstance(answer, Result) else answer[1]


LOOKAHEAD = (
    Lookahead("lookahead", "as ces-ppo with a fixed rule in place of the policy", Decoding()),
    Lookahead("lookahead-64", "as ces-ppo-64 with that rule", Decoding(samples=64, temperature=RULE_TEMPERATURE)),
)
