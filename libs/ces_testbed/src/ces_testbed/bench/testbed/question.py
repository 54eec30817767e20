"""What the experiment is asked. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ces_core.solvers import DEFAULT

PLAIN = "least-allocated-blind"  # runs on a network that reserves nothing
SCHEDULERS = ("random", "smart", "flexitask", "ppo-balance", "ces-ppo", DEFAULT, PLAIN)
ARCHITECTURES = ("gossip", "etree", "parameter-server")


@dataclass(frozen=True)
class Question:
    """``limit_s``: after which a training that has not reached the accuracy is ended."""

    schedulers: Sequence[str] = SCHEDULERS
    architectures: Sequence[str] = ARCHITECTURES
    seeds: Sequence[int] = (1, 2, 3, 4, 5)
    accuracy: float = 0.9
    limit_s: float = 90.0

    @property
    def runs(self) -> int:
        return len(self.schedulers) * len(self.architectures) * len(self.seeds)

    def in_turn(self, place: int) -> list[str]:
        """The schedulers in the order of the ``place``-th seed: each comes first in its turn, so that what changes on
        the machine over time favours none."""
        turn = place % len(self.schedulers)
        return [*self.schedulers[turn:], *self.schedulers[:turn]]
