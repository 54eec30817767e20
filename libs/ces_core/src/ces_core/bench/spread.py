"""Numbers about numbers, each with how many there were."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

CONFIDENT = 1.96
"""Standard errors to either side that hold the true mean with 95 %."""


def spread(values: Iterable[float]) -> dict[str, Any]:
    """``n``, mean, sample standard deviation (0 for one value), least, median, 99th percentile and most; ``n`` alone
    where there is no value."""
    array = np.fromiter(values, dtype=np.float64)
    if not len(array):
        return {"n": 0}
    p50, p99 = np.percentile(array, (50, 99))
    return {
        "n": len(array),
        "mean": float(array.mean()),
        "std": float(array.std(ddof=1)) if len(array) > 1 else 0.0,
        "min": float(array.min()),
        "p50": float(p50),
        "p99": float(p99),
        "max": float(array.max()),
    }


def share(count: int, of: int) -> dict[str, Any]:
    """A share with what it is a share of, and where the true one lies with 95 % confidence (Wilson's interval)."""
    if not of:
        return {"n": 0}
    value, z2 = count / of, CONFIDENT**2
    middle = (value + z2 / (2 * of)) / (1 + z2 / of)
    around = CONFIDENT * math.sqrt(value * (1 - value) / of + z2 / (4 * of**2)) / (1 + z2 / of)
    return {"n": of, "mean": value, "low": max(0.0, middle - around), "high": min(1.0, middle + around)}


def plus_minus(found: dict[str, Any], digits: int = 3) -> str:
    """Mean and standard deviation for a table; a dash where nothing was measured."""
    return f"{found['mean']:.{digits}f} ± {found['std']:.{digits}f}" if found["n"] else "-"


def figure(found: dict[str, Any], key: str, digits: int = 3) -> str:
    """One of its figures for a table."""
    return f"{found[key]:.{digits}f}" if found["n"] else "-"


def percent(found: dict[str, Any]) -> str:
    """A share for a table."""
    return f"{found['mean'] * 100:.1f}" if found["n"] else "-"
