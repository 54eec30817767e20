"""Quality against decision time as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_core.bench.asking import network_in_words
from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, percent, plus_minus

COLUMNS = (
    "solver and time limit", "ms p50", "ms p99", "placed %", "composite, 0 if unplaced", "below best known",
    "the same, unplaced counted whole",
)  # fmt: skip


def points(found: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Solver -> its figures under growing time limits; once where limits make no difference to its answers."""
    return {name: given[:1] if _alike(given) else list(given) for name, given in found["anytime"].items()}


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    sizes = question["tasks"]
    return (
        f"jobs of {sizes[0]}-{sizes[-1]} tasks, {network_in_words(question)}, {question['rounds']} for each number of "
        f"tasks, seed {question['seed']}"
    )


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """One table for each regime, fastest first."""
    return [_grid(results["question"], regime, found) for regime, found in results["regimes"].items()]


def _alike(given: list[Mapping[str, Any]]) -> bool:
    return len({(each["placed"]["mean"], round(each["composite_or_0"]["mean"], 6)) for each in given}) == 1


def _grid(question: Mapping[str, Any], regime: str, found: Mapping[str, Any]) -> Grid:
    title = (
        f"Regime {regime}: {found['instances']} {describe(question)}; {found['placed_by_somebody']} have a place as "
        f"far as is known, {found['proven_optima']} optima are proven. One line where time limits change no answer."
    )
    rows = []
    for name, given in points(found).items():
        for point in given:
            label = name if len(given) == 1 else f"{name} @ {point['limit_s'] * 1e3:g} ms"
            rows.append((point["wall_ms"]["p50"], _row(label, point)))
    return Grid(title, COLUMNS, [row for _, row in sorted(rows)])


def _row(label: str, point: Mapping[str, Any]) -> list[str]:
    return [
        label,
        figure(point["wall_ms"], "p50", 2),
        figure(point["wall_ms"], "p99", 2),
        percent(point["placed"]),
        plus_minus(point["composite_or_0"]),
        figure(point["regret"], "mean", 5),
        figure(point["shortfall"], "mean", 5),
    ]
