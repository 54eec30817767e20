"""The cross-entropy method: numbers are drawn around a mean, and mean and spread move to those of the best fifth.

Rubinstein, "The cross-entropy method for combinatorial and continuous optimization" (1999).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
News = Callable[[int, FloatArray], None]
"""Hears of a generation and the gains of its mean, per kind of job."""

BEST = 0.2
"""Share of the draws that the next ones are drawn around."""


def learned(
    start: FloatArray,
    spread: FloatArray,
    least_spread: FloatArray,
    gains: Callable[[FloatArray], FloatArray],
    *,
    generations: int,
    draws: int,
    seed: int,
    news: News,
) -> FloatArray:
    """The last mean. ``gains`` of a draw are per kind of job; each kind counts alike, whatever its spread."""
    rng = np.random.default_rng(seed)
    mean = start
    for generation in range(generations):
        drawn = mean + spread * rng.standard_normal((draws, len(mean)))
        drawn[0] = mean
        gained = np.array([gains(draw) for draw in drawn])
        news(generation, gained[0])
        level = gained - gained.mean(axis=0)
        worth = (level / np.maximum(gained.std(axis=0), 1e-9)).mean(axis=1)
        best = drawn[np.argsort(-worth, kind="stable")[: max(2, int(BEST * draws))]]
        mean = 0.3 * mean + 0.7 * best.mean(axis=0)
        spread = 0.3 * spread + 0.7 * best.std(axis=0) + least_spread
    return mean
