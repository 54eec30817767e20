"""What the experiment is asked. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ces_experiments.measure.program import PROGRAMS

SHARES = (0.25, 0.35, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Question:
    """``shares``: of this machine's whole CPU, a node each. ``processes``: in how many each program runs. ``tries``:
    how often something is measured again beside which others used more than a tenth of the CPU."""

    shares: Sequence[float] = SHARES
    programs: Sequence[str] = tuple(PROGRAMS)
    processes: Sequence[int] = (1, 2)
    repeats: int = 3
    seconds: float = 3.0
    tries: int = 3
    seed: int = 1

    def in_order(self, repeat: int) -> list[float]:
        """The shares as the seed draws them, so that what changes on the machine over time favours none."""
        return random.Random(f"{self.seed}.{repeat}").sample(list(self.shares), len(self.shares))

    @property
    def runs(self) -> int:
        return len(self.shares) * self.repeats * (1 + len(self.programs) * len(self.processes))
