"""The thesis's simulation (figure 4-3) as tables: those of the placement benchmark, and one by number of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ces_experiments.common.options import proving
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import percent, plus_minus
from ces_experiments.placement import report
from ces_experiments.placement.comparison import Question
from ces_experiments.placement.experiment import on_single_jobs
from ces_experiments.placement.plots import pictures
from ces_experiments.placement.summary import ranked, summarise


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """Two for each regime."""
    by_tasks = [_by_tasks(results["question"], regime, found) for regime, found in results["regimes"].items()]
    return [grid for pair in zip(report.tables(results), by_tasks, strict=True) for grid in pair]


def _by_tasks(question: Mapping[str, Any], regime: str, found: Mapping[str, Any]) -> Grid:
    sizes = [str(size) for size in question["tasks"]]
    title = (
        f"Regime {regime}, by number of tasks: composite over what was placed, mean ± standard deviation; behind it "
        f"how many of {question['rounds']} jobs were placed, in %."
    )
    rows = [[name, *(_cell(found["solvers"][name]["by_tasks"][size]) for size in sizes)] for name in ranked([found])]
    known = found["best_known"]["by_tasks"]
    rows.append(["best known", *(plus_minus(known[size]["composite"]) for size in sizes)])
    return Grid(title, ("solver", *(f"{size} tasks" for size in sizes)), rows)


def _cell(found: Mapping[str, Any]) -> str:
    return f"{plus_minus(found['composite'])}, {percent(found['placed'])} %"


REPORT = Report(tables, pictures)
THESIS = on_single_jobs(partial(proving(Question), nodes=10, topology="random", anytime=()), summarise, REPORT)
