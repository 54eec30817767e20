"""The thesis's simulation (figure 4-3) as tables: those of the placement benchmark, and one by number of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_core.bench import placement_report
from ces_core.bench.results import Grid
from ces_core.bench.spread import percent, plus_minus


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """Two tables for each regime."""
    by_tasks = [_by_tasks(results["question"], regime, found) for regime, found in results["regimes"].items()]
    return [grid for pair in zip(placement_report.grids(results), by_tasks, strict=True) for grid in pair]


def _by_tasks(question: Mapping[str, Any], regime: str, found: Mapping[str, Any]) -> Grid:
    sizes = [str(size) for size in question["tasks"]]
    title = (
        f"Regime {regime}, by number of tasks: composite over what was placed, mean ± standard deviation; behind it "
        f"how many of {question['rounds']} jobs were placed, in %."
    )
    rows = [
        [name, *(_cell(found["solvers"][name]["by_tasks"][size]) for size in sizes)]
        for name in placement_report.best_first([found])
    ]
    known = found["best_known"]["by_tasks"]
    rows.append(["best known", *(plus_minus(known[size]["composite"]) for size in sizes)])
    return Grid(title, ("solver", *(f"{size} tasks" for size in sizes)), rows)


def _cell(found: Mapping[str, Any]) -> str:
    return f"{plus_minus(found['composite'])}, {percent(found['placed'])} %"
