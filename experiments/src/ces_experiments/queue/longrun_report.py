"""The long-run benchmark's results as tables and a picture: what is gained on the first solver, by load."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots, words
from ces_experiments.common.command import Experiment
from ces_experiments.common.plots import Column
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import Spread, confidence, of, plus_minus
from ces_experiments.queue.longrun import Comparison, measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS: Mapping[str, tuple[str, int, float]] = {
    "accepted %": ("accepted", 1, 100.0),
    "work accepted %": ("work", 1, 100.0),
    "D of those that run": ("bandwidth_satisfaction", 4, 1.0),
    "D of all that came": ("served", 4, 1.0),
    "L": ("load_imbalance", 4, 1.0),
    "composite": ("composite", 4, 1.0),
    "mean wait, s": ("wait_s", 0, 1.0),
}
"""Heading -> measure, digits and factor."""
GAINS = (
    Column("accepted", "accepted, points", 100.0),
    Column("bandwidth_satisfaction", "D of those that run"),
    Column("served", "D of all that came"),
    Column("load_imbalance", "load imbalance L"),
)


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    return (
        f"{question['jobs']} jobs, {words.network(question)}, {words.times(question['repeats'])}, "
        f"seed {question['seed']}; "
        f"policy {question['policy']}, jobs run {question['duration_s']:g} s on average and wait "
        f"{question['patience_s']:g} s at most; {words.limit(question)}"
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One for each regime and load."""
    return [
        _table(f"Regime {regime}, offered load {load}: {describe(results['question'])}", found)
        for regime, loads in results["regimes"].items()
        for load, found in loads.items()
    ]


def _table(title: str, found: Mapping[str, Any]) -> Grid:
    first = next(iter(found["solvers"]))
    note = "mean ± standard deviation; differences: mean ± 95 % confidence"
    grids = [
        Grid.of(
            f"{title}; {note}.",
            "solver",
            {heading: of(what, form, digits, factor) for heading, (what, digits, factor) in COLUMNS.items()},
            rows,
        )
        for form, rows in (
            (plus_minus, found["solvers"].items()),
            (_gain, ((f"{name} - {first}", each) for name, each in found["differences"].items())),
        )
    ]
    return Grid(grids[0].title, grids[0].columns, [row for grid in grids for row in grid.rows])


def _gain(found: Spread, digits: int, factor: float) -> str:
    if found["n"] < 2:
        return "-"
    return f"{found['mean'] * factor:+.{digits}f} ± {confidence(found)[1] * factor:.{digits}f}"


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    regimes, question = results["regimes"], results["question"]
    first, *others = question["solvers"]
    figure, axes = plots.panels(len(regimes), len(GAINS), width=2.8, height=2.3, sharey="col")
    for line, (regime, loads) in zip(axes, regimes.items(), strict=True):
        for axis, column in zip(line, GAINS, strict=True):
            _differences(axis, loads, column, others)
            axis.set_title(f"{regime}: {column.label}", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("offered load")
    plots.legend_outside(figure, axes[0][0])
    text = f"above {first}, on the same jobs and clusters; bars: 95 % confidence\n{describe(question)}"
    return {"gains.png": plots.caption(figure, text)}


def _differences(axis: Axes, loads: Mapping[str, Any], column: Column, solvers: list[str]) -> None:
    offered = [float(load) for load in loads]
    gap = min((high - low for low, high in pairwise(offered)), default=0.1)
    axis.axhline(0.0, color="#444444", linewidth=0.8)
    for place, (name, style) in enumerate(plots.styles(solvers).items()):
        found = [each["differences"][name][column.what] for each in loads.values()]
        shift = plots.beside(place, len(solvers)) * gap if len(solvers) > 1 else 0.0
        means = [column.factor * each["mean"] for each in found]
        bars = [column.factor * confidence(each)[1] for each in found]
        axis.errorbar([load + shift for load in offered], means, yerr=bars, label=name, **style.look)
    axis.set(xticks=offered, xlim=(min(offered) - gap / 2, max(offered) + gap / 2))


REPORT = Report(tables, pictures)
LONGRUN = Experiment(Comparison.of, measure, REPORT)
