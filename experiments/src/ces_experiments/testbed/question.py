"""What the experiment is asked. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ces_core.registry import DEFAULT

PLAIN = "least-allocated-blind"  # runs on a network that reserves nothing
RESERVED = "least-allocated"  # the same choice of nodes on a network that does: what the network alone changes
SCHEDULERS = ("random", "smart", "flexitask", "ppo-balance", "imitation", DEFAULT, RESERVED, PLAIN)
ARCHITECTURES = ("gossip", "etree", "parameter-server")
KNOWN_ARCHITECTURES = (*ARCHITECTURES, "ring")
FIRST_SEED = 6  # those before it were for trials: the setting was made with them in sight


@dataclass(frozen=True)
class Question:
    """``limit_s``: after which a training that has not reached the accuracy is ended."""

    schedulers: Sequence[str] = SCHEDULERS
    architectures: Sequence[str] = ARCHITECTURES
    seeds: Sequence[int] = tuple(range(FIRST_SEED, FIRST_SEED + 5))
    accuracy: float = 0.9
    limit_s: float = 90.0

    @staticmethod
    def of(*, seeds: int, first_seed: int, **values: Any) -> Question:
        """``seeds``: how many."""
        return Question(seeds=tuple(range(first_seed, first_seed + seeds)), **values)

    @property
    def runs(self) -> int:
        return len(self.schedulers) * len(self.architectures) * len(self.seeds)

    def in_order(self, seed: int) -> list[str]:
        """The schedulers in the order that the seed draws, so that what changes on the machine over time, and who ran
        before whom, favours none."""
        return random.Random(seed).sample(self.schedulers, len(self.schedulers))
