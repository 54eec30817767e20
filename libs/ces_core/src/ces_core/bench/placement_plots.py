"""The placement benchmark's results as pictures.

Many solvers share no panel: the summary has a line of text for each, and curves over the number of tasks a panel each.
A few are drawn over each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ces_core.bench.asking import network_in_words
from ces_core.bench.drawing import (
    DECISIONS,
    FEW,
    Column,
    beside,
    curve,
    dots,
    legend_outside,
    panels,
    plain_log_axis,
    save,
    styles,
)
from ces_core.bench.placement_report import ranked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Mapping[str, Any]
Pick = Callable[[Mapping[str, Any]], Mapping[str, Any]]
FEW_JOBS = "; those of two or three jobs may leave the panel"
ACROSS = 5
"""Panels in a row, one for each solver."""
QUALITY: Mapping[str, tuple[str, float]] = {
    "composite": ("composite", 1.0),
    "load_imbalance": ("load imbalance L", 1.0),
    "bandwidth_satisfaction": ("bandwidth satisfaction D", 1.0),
    "placed": ("jobs placed, %", 100.0),
}
"""Figure -> what it is called on an axis, and the factor that goes with it."""


def draw(results: Results, out: Path) -> list[str]:
    """Draw the pictures under ``out``; gives their names."""
    pictures = {"summary.png": _summary(results)}
    if len(results["question"]["solvers"]) <= FEW:
        pictures["by-tasks.png"] = _over_each_other(results)
    else:
        for what in QUALITY:
            pictures[f"{what.replace('_', '-')}-by-tasks.png"] = _side_by_side(results, what)
    if len(results["question"]["anytime"]):
        pictures["over-time.png"] = _over_time(results)
    for name, figure in pictures.items():
        save(figure, out / name)
    return list(pictures)


def _summary(results: Results) -> Figure:
    shown = {"placed": QUALITY["placed"], "composite_or_0": ("composite, 0 if unplaced", 1.0)}
    shown |= {what: QUALITY[what] for what in ("load_imbalance", "bandwidth_satisfaction")}
    shown |= {"regret": ("below the best known", 1.0)}
    columns = [Column(what, label, factor) for what, (label, factor) in shown.items()]
    rows = {
        regime: {name: solver["all_tasks"] for name, solver in found["solvers"].items()}
        for regime, found in results["regimes"].items()
    }
    figure = dots(rows, [*columns, DECISIONS], ranked(results))
    _caption(figure, results, "; times: median to 99th percentile")
    return figure


def _over_each_other(results: Results) -> Figure:
    """Regimes as columns, figures as rows, a curve for each solver: the thesis's figure 4-3."""
    regimes, sizes = results["regimes"], results["question"]["tasks"]
    known = styles(results["question"]["solvers"])
    figure, axes = panels(len(QUALITY), len(regimes), sharex=True, sharey="row")
    for column, (regime, found) in enumerate(regimes.items()):
        for line, (what, (label, factor)) in zip(axes, QUALITY.items(), strict=True):
            axis = line[column]
            if what == "composite":
                _best_known(axis, found, sizes, "#777777")
            for place, (name, style) in enumerate(known.items()):
                by_tasks = found["solvers"][name]["by_tasks"]
                shift = beside(place, len(known))
                points = [(size + shift, by_tasks[str(size)][what]) for size in sizes]
                curve(axis, points, factor, label=name, **style.keywords())
            if not column:
                axis.set_ylabel(label)
        axes[0][column].set_title(regime)
        axes[-1][column].set_xlabel("tasks in the job")
        axes[-1][column].set_xticks(sizes)
    for line, (what, (_, factor)) in zip(axes, QUALITY.items(), strict=True):
        if what != "placed":
            line[0].set_ylim(*_range_of_means(results, what, factor))
    legend_outside(figure, axes[0][0])
    _caption(figure, results, FEW_JOBS)
    return figure


def _side_by_side(results: Results, what: str) -> Figure:
    """A panel for each solver, best first, and in it a curve for each regime."""
    sizes, order = results["question"]["tasks"], ranked(results)
    regimes = dict(zip(results["regimes"], styles(list(results["regimes"])).values(), strict=True))
    label, factor = QUALITY[what]
    rows = -(-len(order) // ACROSS)
    figure, axes = panels(rows, ACROSS, width=2.2, height=1.9, sharex=True, sharey=True)
    for place, axis in enumerate(axis for line in axes for axis in line):
        if place >= len(order):
            axis.set_visible(False)
            continue
        for i, (regime, style) in enumerate(regimes.items()):
            found = results["regimes"][regime]
            if what == "composite":
                _best_known(axis, found, sizes, style.colour)
            by_tasks = found["solvers"][order[place]]["by_tasks"]
            points = [(size + beside(i, len(regimes)), by_tasks[str(size)][what]) for size in sizes]
            curve(axis, points, factor, label=regime, **style.keywords())
        axis.set_title(order[place], fontsize=9)
        axis.set_xticks(sizes)
        if place >= len(order) - ACROSS:
            axis.set_xlabel("tasks in the job", fontsize=9)
            axis.tick_params(labelbottom=True)
        if not place % ACROSS:
            axis.set_ylabel(label, fontsize=9)
    axes[0][0].set_ylim(*_range_of_means(results, what, factor))
    legend_outside(figure, axes[0][0])
    _caption(figure, results, FEW_JOBS)
    return figure


def _range_of_means(results: Results, what: str, factor: float) -> tuple[float, float]:
    """Limits that show all means: bars of very few jobs would leave them no room."""
    figures = [
        figure[what]["mean"]
        for found in results["regimes"].values()
        for solver in (*found["solvers"].values(), *([found["best_known"]] if what == "composite" else []))
        for figure in solver["by_tasks"].values()
        if figure[what]["n"]
    ]
    low, high = min(figures, default=0.0), max(figures, default=1.0)
    margin = 0.08 * (high - low) or 0.05
    return factor * (low - margin), factor * (high + margin)


def _over_time(results: Results) -> Figure:
    """Quality against the time that decisions took: not the limit, which some do not need and others overrun."""
    regimes = results["regimes"]
    known = styles(ranked(results))
    figure, axes = panels(2, len(regimes), sharex=True, sharey="row", height=3.1)
    rows = {"composite_or_0": ("composite, 0 if unplaced", 1.0), "placed": QUALITY["placed"]}
    for column, (regime, found) in enumerate(regimes.items()):
        for line, (what, (label, factor)) in zip(axes, rows.items(), strict=True):
            axis = line[column]
            for name, style in known.items():
                drawn = [(point["wall_ms"]["p50"], point[what]) for point in found["anytime"][name]]
                if len({round(value["mean"], 9) for _, value in drawn}) == 1:  # more time changes nothing
                    drawn = drawn[len(drawn) // 2 :][:1]
                curve(axis, drawn, factor, label=name, **style.keywords())
            plain_log_axis(axis)
            if not column:
                axis.set_ylabel(label)
        axes[0][column].set_title(regime)
        axes[-1][column].set_xlabel("median time of a decision, ms")
    legend_outside(figure, axes[0][0])
    _caption(figure, results)
    return figure


def _best_known(axis: Axes, found: Mapping[str, Any], sizes: list[int], colour: str) -> None:
    by_tasks = found["best_known"]["by_tasks"]
    there = [
        (size, by_tasks[str(size)]["composite"]["mean"]) for size in sizes if by_tasks[str(size)]["composite"]["n"]
    ]
    values = [value for _, value in there]
    axis.plot([size for size, _ in there], values, color=colour, linewidth=5, alpha=0.25, label="best known")


def _caption(figure: Figure, results: Results, more: str = "") -> None:
    question = results["question"]
    text = (
        f"{network_in_words(question)}, {question['rounds']} rounds for each regime and number of tasks, seed "
        f"{question['seed']}; bars: 95 % confidence of the mean{more}"
    )
    figure.supxlabel(text, fontsize=8, color="#444444")
