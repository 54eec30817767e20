"""The Pareto benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, percent, plus_minus


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    limit, sizes = question["time_limit_s"], question["tasks"]
    return (
        f"jobs of {', '.join(map(str, sizes))} tasks, random network of 10 nodes, seed {question['seed']}, "
        f"{f'{limit * 1e3:g} ms' if limit else 'no limit'} for each decision"
    )


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """For each regime one table of L and D, and one of what the weighed objective lacks."""
    question = results["question"]
    return [
        grid
        for regime, found in results["regimes"].items()
        for grid in (_trade(question, regime, found), _lack(question, regime, found))
    ]


def _trade(question: Mapping[str, Any], regime: str, found: Mapping[str, Any]) -> Grid:
    title = (
        f"Regime {regime}: mean L / mean D by the weight of balance; {found['placed_by_all']} of {found['instances']} "
        f"{describe(question)}, those that all solvers placed under all weights."
    )
    rows = []
    for name, solver in found["solvers"].items():
        cells = [
            f"{figure(each['load_imbalance'], 'mean')} / {figure(each['bandwidth_satisfaction'], 'mean')}"
            for each in solver["by_balance"].values()
        ]
        rows.append([name, percent(solver["placed"]), *cells])
    return Grid(title, ("solver", "placed %", *_weights(question)), rows)


def _lack(question: Mapping[str, Any], regime: str, found: Mapping[str, Any]) -> Grid:
    title = (
        f"Regime {regime}, the same jobs: how far a (1 - L) + (1 - a) D is below the best known, "
        "mean ± standard deviation."
    )
    rows = [
        [name, *(plus_minus(each["regret"], 4) for each in solver["by_balance"].values())]
        for name, solver in found["solvers"].items()
    ]
    return Grid(title, ("solver", *_weights(question)), rows)


def _weights(question: Mapping[str, Any]) -> list[str]:
    return [f"a = {weight:g}" for weight in question["balance"]]
