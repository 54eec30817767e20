"""The long-run benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_core.bench.asking import network_in_words
from ces_core.bench.drawing import confidence
from ces_core.bench.results import Grid
from ces_core.bench.spread import plus_minus

COLUMNS: Mapping[str, tuple[str, float, int]] = {
    "accepted": ("accepted %", 100.0, 1),
    "work": ("work accepted %", 100.0, 1),
    "bandwidth_satisfaction": ("D of those that run", 1.0, 4),
    "served": ("D of all that came", 1.0, 4),
    "load_imbalance": ("L", 1.0, 4),
    "composite": ("composite", 1.0, 4),
    "wait_s": ("mean wait, s", 1.0, 0),
}
"""Measure -> heading, factor and digits."""


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    limit = question["time_limit_s"]
    return (
        f"{question['jobs']} jobs, {network_in_words(question)}, {question['repeats']} times, seed {question['seed']}; "
        f"policy {question['policy']}, jobs run {question['duration_s']:g} s on average and wait "
        f"{question['patience_s']:g} s at most; {f'{limit * 1e3:g} ms' if limit else 'no limit'} for each decision"
    )


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """A table for each regime and load."""
    return [
        _grid(f"Regime {regime}, offered load {load}", results["question"], found)
        for regime, loads in results["regimes"].items()
        for load, found in loads.items()
    ]


def _grid(title: str, question: Mapping[str, Any], found: Mapping[str, Any]) -> Grid:
    first = next(iter(found["solvers"]))
    rows = [
        [name, *(plus_minus(_times(each[what], factor), digits) for what, (_, factor, digits) in COLUMNS.items())]
        for name, each in found["solvers"].items()
    ]
    rows += [
        [f"{name} - {first}", *(_gain(each[what], factor, digits) for what, (_, factor, digits) in COLUMNS.items())]
        for name, each in found["differences"].items()
    ]
    note = "mean ± standard deviation; differences: mean ± 95 % confidence"
    return Grid(f"{title}: {describe(question)}; {note}.", ("solver", *(head for head, _, _ in COLUMNS.values())), rows)


def _times(found: Mapping[str, Any], factor: float) -> dict[str, Any]:
    return {"n": found["n"]} | {key: found[key] * factor for key in ("mean", "std") if key in found}


def _gain(found: Mapping[str, Any], factor: float, digits: int) -> str:
    if found["n"] < 2:
        return "-"
    return f"{found['mean'] * factor:+.{digits}f} ± {confidence(found)[1] * factor:.{digits}f}"
