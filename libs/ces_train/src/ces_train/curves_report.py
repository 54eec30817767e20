"""Learning curves with and without the heuristic reward, as tables. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_core.bench.results import Grid
from ces_core.bench.spread import plus_minus

SHOWN = {
    "composite_or_0": "composite, 0 if unplaced",
    "placed": "placed",
    "composite": "composite",
    "load_imbalance": "L",
    "bandwidth_satisfaction": "D",
}


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    first, runs = question["seed"], question["runs"]
    return (
        f"{question['updates']} updates, seeds {first} to {first + runs - 1}, {question['validation']} validation "
        "instances of each regime"
    )


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """What the runs came to, and what the heuristic reward gained."""
    question, regimes = results["question"], list(results["gain"])
    rows = [
        [f"{regime}, {variant}", *(plus_minus(curves[regime][what][-1], 4) for what in SHOWN)]
        for regime in regimes
        for variant, curves in results["curves"].items()
    ]
    ends = Grid(
        f"After {describe(question)}: mean ± standard deviation over the seeds.", ("regime", *SHOWN.values()), rows
    )
    rows = [[regime, *(_gain(results["gain"][regime][what]) for what in SHOWN)] for regime in regimes]
    title = "What the runs with the heuristic reward end above those without, seed by seed: mean, least to most."
    return [ends, Grid(title, ("regime", *SHOWN.values()), rows)]


def _gain(found: Mapping[str, Any]) -> str:
    return f"{found['mean']:+.4f}, {found['min']:+.4f} to {found['max']:+.4f}" if found["n"] else "-"
