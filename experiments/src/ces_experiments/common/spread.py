"""Numbers about numbers, each with how many there were, and how tables say them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import stdtrit

Spread = Mapping[str, Any]
Cell = Callable[[Any], str]
"""From what was found to what a table says of it."""


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


def milliseconds(seconds: Iterable[float]) -> dict[str, Any]:
    """Of values in seconds: percentiles, the worst, and how many there were; empty where there is none."""
    array = np.fromiter(seconds, dtype=np.float64) * 1000
    if not len(array):
        return {}
    told = np.percentile(array, (50, 90, 99, 100)).round(1).tolist()
    return dict(zip(("p50", "p90", "p99", "worst"), told, strict=True)) | {"count": len(array)}


def share(count: int, of: int) -> dict[str, Any]:
    """A share with what it is a share of, and where the true one lies with 95 % confidence (Wilson's interval)."""
    if not of:
        return {"n": 0}
    from scipy.stats import binomtest  # takes a second to import, and most commands need no share

    interval = binomtest(count, of).proportion_ci(0.95, method="wilson")
    return {"n": of, "mean": count / of, "low": float(interval.low), "high": float(interval.high)}


def confidence(found: Spread) -> tuple[float, float]:
    """How far the true mean may be below and above, with 95 % confidence (Student's t; shares bring their range)."""
    if "low" in found:
        return max(0.0, found["mean"] - found["low"]), max(0.0, found["high"] - found["mean"])
    around = float(stdtrit(found["n"] - 1, 0.975)) * found["std"] / found["n"] ** 0.5 if found["n"] > 1 else 0.0
    return min(around, found["mean"]), around  # nothing that is drawn is negative


def plus_minus(found: Spread, digits: int = 3, factor: float = 1.0) -> str:
    """Mean and standard deviation, which one value has not, for a table; a dash where nothing was measured."""
    if not found["n"]:
        return "-"
    around = f" ± {found['std'] * factor:.{digits}f}" if found["n"] > 1 else ""
    return f"{found['mean'] * factor:.{digits}f}{around}"


def gain(found: Spread, factor: float, digits: int) -> str:
    """The mean of differences with its sign, and how far the true one may be from it, for a table."""
    if not found["n"]:
        return "-"
    around = f" ± {confidence(found)[1] * factor:.{digits}f}" if found["n"] > 1 else ""
    return f"{found['mean'] * factor:+.{digits}f}{around}"


def figure(found: Spread, key: str, digits: int = 3) -> str:
    """One of its figures for a table."""
    return f"{found[key]:.{digits}f}" if found["n"] else "-"


def percent(found: Spread) -> str:
    """A share for a table."""
    return f"{found['mean'] * 100:.1f}" if found["n"] else "-"


def of(key: str, form: Callable[..., str], *arguments: Any) -> Cell:
    """A table's column: ``form`` of the spread that has this name."""
    return lambda found: form(found[key], *arguments)


def best_first(groups: Iterable[Mapping[str, Any]], value: Callable[[Any], float]) -> list[str]:
    """Names that all groups have, by the sum over the groups of what is valued, the most first."""
    every = list(groups)
    return sorted(every[0], key=lambda name: (-sum(value(group[name]) for group in every), name))
