"""When a candidate takes the live policy's place, and when the former one comes back. Pure: times are passed in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.evolution.confidence import FloatArray, Interval, interval

LEAST_PAIRS = 100
"""Fewer decisions say nothing of the slowest in a hundred."""
SLOWEST = 1.2
"""How much longer the slowest in a hundred decisions of a candidate may take."""
BETWEEN_S = 86_400.0
"""Least time between two promotions."""
PROBATION = 400
"""After so many decisions a promoted policy must have shown that it is better, or the former one comes back. Below 500
by what may be under way meanwhile."""


@dataclass(frozen=True)
class Pairs:
    """Decisions that two policies made of the same problems, in order. ``gains`` (n,): by how much the composite of the
    one is above the other's; ``refused`` (n,): whether the one found no place where the other did; ``ms`` (n, 2): CPU
    time of the other and the one."""

    gains: FloatArray
    refused: np.ndarray
    ms: FloatArray

    @staticmethod
    def none() -> Pairs:
        return Pairs(np.zeros(0), np.zeros(0, dtype=np.bool_), np.zeros((0, 2)))

    def __len__(self) -> int:
        return len(self.gains)

    @property
    def slower(self) -> float:
        """The one's time over the other's, each its slowest in a hundred; 1 without decisions."""
        if not len(self.ms):
            return 1.0
        other, one = np.quantile(self.ms, 0.99, axis=0)
        return float(one / other) if other > 0 else 1.0


@dataclass(frozen=True)
class Verdict:
    """On a candidate. ``against``: everything that speaks against its promotion now, in words; empty: nothing."""

    interval: Interval
    refused: int
    slower: float
    against: tuple[str, ...]

    @property
    def promoted(self) -> bool:
        return not self.against


def judged(pairs: Pairs, *, frozen: bool, promoted_s: float | None, now_s: float) -> Verdict:
    """Whether a candidate may take the live policy's place. ``pairs``: its decisions beside the live one's, on problems
    that it has not learned from; ``promoted_s``: when there was a promotion last."""
    found, refused = interval(pairs.gains), int(pairs.refused.sum())
    against = []
    if frozen:
        against.append("evolution is frozen")
    if promoted_s is not None and now_s - promoted_s < BETWEEN_S:
        hours = (BETWEEN_S - (now_s - promoted_s)) / 3600.0
        against.append(f"there is one promotion a day: the next in {hours:.1f} hours")
    if refused:
        against.append(f"it found no place for {refused} jobs that the live one placed")
    if len(pairs) < LEAST_PAIRS:
        against.append(f"{len(pairs)} decisions are compared, and {LEAST_PAIRS} are least")
    elif pairs.slower > SLOWEST:
        against.append(f"its slowest in a hundred take {pairs.slower:.2f} times as long; {SLOWEST} is most")
    if found.low <= 0.0:
        against.append(f"the gain {found} may be 0")
    return Verdict(found, refused, pairs.slower, tuple(against))


def must_return(pairs: Pairs, decisions: int, *, frozen: bool) -> str | None:
    """Why the former policy is to come back now; None: it is not. ``pairs``: the live one's decisions since its
    promotion beside those that the former would have made; ``decisions``: how many the live one has made since."""
    if frozen:
        return None
    refused = int(pairs.refused.sum())
    if refused:
        return f"it found no place for {refused} jobs that the former one places"
    found = interval(pairs.gains)
    if found.high < 0.0:
        return f"it is worse than the former one: {found}"
    if decisions >= PROBATION and len(pairs) < LEAST_PAIRS:
        return (
            f"of its first {decisions} decisions {len(pairs)} were compared with the former one's, too few to keep it"
        )
    if decisions >= PROBATION and found.mean <= 0.0:
        return f"it has shown no gain in its first {decisions} decisions: {found}"
    return None
