"""What is asked of the security benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KINDS_OF_TRAINING: Final = ("ring", "gossip", "etree", "parameter-server")
READ_S: Final = 60.0  # at the most, for which messages go no faster than they are read


@dataclass(frozen=True)
class Question:
    """``seconds``: how long the rogue agent attacks a cluster that trains; 0: not at all. ``each``: hostile messages
    of each kind, before that; 0: none. ``honest``: simulated agents whose heartbeats are timed. ``trained``: the kinds
    of training, each a job of ``workers`` workers with hidden layers of this size. ``rounds``: of the same jobs without
    an attack, by which it is known how many rounds last through it."""

    seconds: float = 600.0
    each: int = 10_000
    honest: int = 20
    trained: tuple[str, ...] = KINDS_OF_TRAINING
    workers: int = 4
    hidden: int = 256
    rounds: int = 60
    seed: int = 1

    @property
    def paced_s(self) -> float:
        return min(READ_S, self.each / 100)

    @property
    def calm_s(self) -> float:
        """For how long heartbeats are timed before the hostile messages."""
        return max(5.0, self.paced_s / 2)

    @property
    def calm_before_s(self) -> float:
        """The same before the rogue agent."""
        return max(5.0, min(60.0, self.seconds / 5))
