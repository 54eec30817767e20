"""The generalisation benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, percent


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """For each regime and number of tasks one table of quality and one of times."""
    question = results["question"]
    return [
        grid
        for regime, by_tasks in results["regimes"].items()
        for tasks, by_network in by_tasks.items()
        for grid in (_quality(question, regime, tasks, by_network), _times(question, regime, tasks, by_network))
    ]


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    limit = question["time_limit_s"]
    each = f"{limit * 1e3:g} ms" if limit else "no limit"
    return f"{question['rounds']} jobs for each network, seed {question['seed']}, {each} for each decision"


def _quality(question: Mapping[str, Any], regime: str, tasks: str, found: Mapping[str, Any]) -> Grid:
    proven = ", ".join(f"{case['proven_optima']}" for case in found.values())
    known = ", ".join(f"{case['placed_by_somebody']}" for case in found.values())
    title = (
        f"Regime {regime}, {tasks} tasks, {describe(question)}: mean distance of the composite to the best known, over "
        f"what was placed; behind it how many jobs were placed, in %. Placed by some solver, from left to right: "
        f"{known}; optima proven: {proven}."
    )
    rows = [[name, *(_cell(case["solvers"][name]) for case in found.values())] for name in question["solvers"]]
    return Grid(title, ("solver", *found), rows)


def _cell(solver: Mapping[str, Any]) -> str:
    return f"{figure(solver['regret'], 'mean', 4)}, {percent(solver['placed'])} %"


def _times(question: Mapping[str, Any], regime: str, tasks: str, found: Mapping[str, Any]) -> Grid:
    title = f"Regime {regime}, {tasks} tasks: median time of a decision with its paths known, ms."
    rows = [
        [name, *(figure(case["solvers"][name]["wall_ms"], "p50", 2) for case in found.values())]
        for name in question["solvers"]
    ]
    return Grid(title, ("solver", *found), rows)
