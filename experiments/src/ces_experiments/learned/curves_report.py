"""Learning curves with and without the heuristic reward, as tables and as a picture. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.plots import COMPOSITE_OR_0, IMBALANCE, PLACED, SATISFACTION, Column
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import Spread, of, plus_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = {
    "composite, 0 if unplaced": "composite_or_0",
    "placed": "placed",
    "composite": "composite",
    "L": "load_imbalance",
    "D": "bandwidth_satisfaction",
}
ROWS = (COMPOSITE_OR_0, PLACED, SATISFACTION, IMBALANCE)


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    first, runs = question["seed"], question["runs"]
    return (
        f"{question['updates']} updates, seeds {first} to {first + runs - 1}, {question['validation']} validation "
        "instances of each regime"
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What the runs came to, and what the heuristic reward gained."""
    ends = [
        (f"{regime}, {variant}", {what: over_seeds[-1] for what, over_seeds in curves[regime].items()})
        for regime in results["gain"]
        for variant, curves in results["curves"].items()
    ]
    came_to = f"After {describe(results['question'])}: mean ± standard deviation over the seeds."
    gained = "What the runs with the heuristic reward end above those without, seed by seed: mean, least to most."
    return [
        Grid.of(came_to, "regime", {head: of(what, plus_minus, 4) for head, what in SHOWN.items()}, ends),
        Grid.of(gained, "regime", {head: of(what, gain) for head, what in SHOWN.items()}, results["gain"].items()),
    ]


def gain(found: Spread) -> str:
    """For a table."""
    return f"{found['mean']:+.4f}, {found['min']:+.4f} to {found['max']:+.4f}" if found["n"] else "-"


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    regimes = list(results["gain"])
    figure, axes = plots.crossed(ROWS, regimes, "updates", sharex=True)
    for line, column in zip(axes, ROWS, strict=True):
        for axis, regime in zip(line, regimes, strict=True):
            for i, (name, curves) in enumerate(results["curves"].items()):
                marks = [point["updates"] for point in results["variants"][name]["runs"][0]["points"]]
                look = {"label": name, "color": plots.COLOURS[i], "linestyle": plots.LINES[i]}
                _curve(axis, marks, curves[regime][column.what], column, look)
    plots.legend_outside(figure, axes[0][0])
    text = f"{describe(results['question'])}; lines: mean over the seeds, bands: least to most"
    return {"curves.png": plots.caption(figure, text)}


def _curve(
    axis: Axes, marks: Sequence[int], over_seeds: Sequence[Spread], column: Column, look: Mapping[str, Any]
) -> None:
    there = [(mark, found) for mark, found in zip(marks, over_seeds, strict=True) if found["n"]]
    places = [mark for mark, _ in there]
    mean, least, most = ([column.factor * found[key] for _, found in there] for key in ("mean", "min", "max"))
    axis.fill_between(places, least, most, color=look["color"], alpha=0.2, linewidth=0)
    axis.plot(places, mean, linewidth=1.6, **look)


REPORT = Report(tables, pictures)
