"""The days of owners: how much of its device each needs at what time. Pure.

The curve is that of :mod:`ces_sim.malleable.availability`; bursts and how far owners differ are our assumptions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ces_sim.malleable.availability import DAY_S, load

HOUR_S: Final = 3600.0
BUSIEST_S: Final = 14 * HOUR_S
"""When owners need their devices most."""
SPREAD_S: Final = 2 * HOUR_S
BURSTS: Final = 2.0  # in a day
BURST_S: Final = (0.5 * HOUR_S, 1.5 * HOUR_S)


@dataclass(frozen=True)
class OwnerDay:
    """``busiest_s``: when the curve is highest; ``bursts``: from when until when the owner needs as much as then.
    Seconds since midnight."""

    busiest_s: float
    bursts: tuple[tuple[float, float], ...] = ()

    def load(self, time_s: float) -> float:
        """What the owner needs at this time, by what it ever needs: 0 to 1."""
        bursting = any(begin <= time_s < end for begin, end in self.bursts)
        return 1.0 if bursting else load(time_s, self.busiest_s)


def draw(seed: int, owners: int) -> Sequence[OwnerDay]:
    """The same seed, the same days."""
    chance = random.Random(f"{seed}/tides")
    return [_day(chance) for _ in range(owners)]


def _day(chance: random.Random) -> OwnerDay:
    busiest_s = chance.gauss(BUSIEST_S, SPREAD_S) % DAY_S
    bursts, at = [], chance.expovariate(BURSTS / DAY_S)
    while at < DAY_S:
        bursts.append((at, at + chance.uniform(*BURST_S)))
        at += chance.expovariate(BURSTS / DAY_S)
    return OwnerDay(busiest_s, tuple(bursts))


def setting() -> dict[str, Any]:
    """What does not depend on the seed, for the results."""
    return {"busiest_s": BUSIEST_S, "spread_s": SPREAD_S, "bursts": BURSTS, "burst_s": BURST_S}
