"""A confidence sequence for the mean of bounded observations: valid at every moment at once, so that anyone may look
at it after each observation and stop when they like.

It is the hedged betting sequence of Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting"
(JRSS B 86, 2024, section 4.2; time-uniform by Ville's inequality, as in Howard, Ramdas, McAuliffe and Sekhon, Annals of
Statistics 49, 2021). Half of the error is for each side. Bets are cut off at :data:`LARGEST_BET` whatever the mean in
question: then capital falls with the mean that is bet against, and the rejected means are an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

CAP = 0.1
"""Gains, differences of the composite, count up to this much either way: the interval is of the mean of gains that are
cut off here. The narrower the range, the fewer decisions are needed."""
LEVEL = 0.95
LARGEST_BET = 0.75
"""Below 1, so that capital stays above 0 whatever is observed."""
BISECTIONS = 40


@dataclass(frozen=True)
class Interval:
    """Of the mean gain; ``mean`` is the observed one, of ``count`` gains. It holds all means without observations."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}] of {self.count}"


def interval(gains: FloatArray, cap: float = CAP, level: float = LEVEL) -> Interval:
    """What the gains (n,), in their order, say of their mean. At any moment in time at once, the mean lies within the
    interval with probability ``level``. ``cap``: gains are cut off there, both ways."""
    cut = np.clip(np.asarray(gains, dtype=np.float64), -cap, cap)
    if not len(cut):
        return Interval(0.0, -cap, cap, 0)
    unit = (cut + cap) / (2.0 * cap)
    low = _lower(unit, level)
    high = 1.0 - _lower(1.0 - unit, level)
    return Interval(float(cut.mean()), cap * (2.0 * low - 1.0), cap * (2.0 * high - 1.0), len(cut))


def bets(unit: FloatArray, level: float) -> FloatArray:
    """(n,) what is bet on each observation (n,) in [0, 1], known before it is seen."""
    count = np.arange(1, len(unit) + 1)
    mean = (0.5 + np.cumsum(unit)) / (count + 1)
    variance = (0.25 + np.cumsum((unit - mean) ** 2)) / (count + 1)
    before = np.concatenate(([0.25], variance[:-1]))
    wished = np.sqrt(2.0 * math.log(2.0 / (1.0 - level)) / (before * count * np.log(count + 1)))
    return np.minimum(wished, LARGEST_BET)


def _lower(unit: FloatArray, level: float) -> float:
    """The largest mean that bets on more have ruled out by now; 0 where none is. It is never too large by rounding."""
    bet, needed = bets(unit, level), math.log(2.0 / (1.0 - level))

    def ruled_out(mean: float) -> bool:
        return bool(np.cumsum(np.log1p(bet * (unit - mean))).max() >= needed)

    low, high = 0.0, 1.0
    if not ruled_out(low):
        return low
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if ruled_out(middle) else (low, middle)
    return low
