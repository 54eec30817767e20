"""The beta distribution: its distribution function and quantiles. Pure."""

from __future__ import annotations

import math
from typing import Final

_TINY: Final = 1e-300
_PRECISE: Final = 1e-12
_TERMS: Final = 20_000
_FAR: Final = 10.0
"""Standard deviations from the mean, within which a quantile is looked for first."""
_WIDTH: Final = 1e-10


def beta_below(x: float, a: float, b: float) -> float:
    """The probability of a value up to ``x``: the regularised incomplete beta function, by its continued fraction
    (https://dlmf.nist.gov/8.17.E22), on the side on which that converges fast."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _fraction(x, a, b) / a
    return 1 - math.exp(log_front) * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluated from the front, by Lentz's method."""
    value, upper, lower = 1.0, math.inf, 1.0
    for term in range(1, _TERMS):
        half = term // 2
        if term % 2:
            part = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            part = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        lower, upper = 1 / _apart(1 + part * lower), _apart(1 + part / upper)
        value *= upper * lower
        if abs(upper * lower - 1) < _PRECISE:
            break
    return value


def _apart(value: float) -> float:
    """From zero, by which is divided."""
    return value if abs(value) > _TINY else _TINY


def beta_quantile(q: float, a: float, b: float) -> float:
    """The value below which a share ``q`` of the distribution lies, to ten digits."""
    if b == 1:
        return math.pow(q, 1 / a)
    if a == 1:
        return 1 - math.pow(1 - q, 1 / b)
    mean = a / (a + b)
    far = _FAR * math.sqrt(mean * (1 - mean) / (a + b + 1))
    low, high = max(mean - far, 0.0), min(mean + far, 1.0)
    low = low if beta_below(low, a, b) <= q else 0.0
    high = high if beta_below(high, a, b) >= q else 1.0
    while high - low > _WIDTH:
        middle = (low + high) / 2
        if beta_below(middle, a, b) < q:
            low = middle
        else:
            high = middle
    return (low + high) / 2
