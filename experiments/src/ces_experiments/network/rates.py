"""From counts of bytes at moments to rates and how far they are off. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Sample = tuple[float, int]  # seconds on a steady clock, bytes so far

WINDOW_S = 0.2  # over which a rate is told while an allocation changes
NEAR = 0.05  # a window this near to the allocation, as a share of it, has it in force


def between(early: Sample, late: Sample) -> float:
    """Mean rate in bit/s."""
    return (late[1] - early[1]) * 8 / (late[0] - early[0])


def each(samples: Sequence[Sample]) -> list[float]:
    """The rates from each sample to the next, in bit/s."""
    return [between(early, late) for early, late in pairwise(samples)]


def errors(rates: Sequence[float], allocated: float) -> list[float]:
    """How far rates are off, in percent of what was allocated."""
    return [100 * (rate / allocated - 1) for rate in rates]


def worst(values: Sequence[float]) -> float:
    """The value farthest from zero."""
    return max(values, key=abs)


def in_force_after(samples: Sequence[Sample], commanded: float, allocated: float) -> float | None:
    """Seconds from a command to the start of the first window from which on every window has the rate; None where it
    never came. ``samples`` are close to each other, and go on for more than a window after the command."""
    after = [sample for sample in samples if sample[0] >= commanded]
    found = None
    late = 0
    for early in after:
        while late < len(after) and after[late][0] < early[0] + WINDOW_S:
            late += 1
        if late == len(after):
            break
        if abs(between(early, after[late]) / allocated - 1) > NEAR:
            found = None
        elif found is None:
            found = early[0] - commanded
    return found
