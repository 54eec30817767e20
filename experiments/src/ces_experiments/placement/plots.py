"""The placement benchmark's results as pictures.

Many solvers share no panel: the summary has a line of text for each, and curves over the number of tasks a panel each.
A few are drawn over each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots, words
from ces_experiments.common.plots import COMPOSITE, COMPOSITE_OR_0, IMBALANCE, PLACED, REGRET, SATISFACTION, Column
from ces_experiments.placement.summary import ranked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Mapping[str, Any]
FEW_JOBS = "; those of two or three jobs may leave the panel"
ACROSS = 5
"""Panels in a row, one for each solver."""
QUALITY = (COMPOSITE, IMBALANCE, SATISFACTION, PLACED)


def pictures(results: Results) -> dict[str, Figure]:
    """By the name of their file."""
    order = ranked(list(results["regimes"].values()))
    drawn = {"summary.png": _summary(results, order)}
    if len(order) <= plots.FEW:
        drawn["by-tasks.png"] = _over_each_other(results)
    else:
        for column in QUALITY:
            drawn[f"{column.what.replace('_', '-')}-by-tasks.png"] = _side_by_side(results, order, column)
    if len(results["question"]["anytime"]):
        drawn["over-time.png"] = _over_time(results, order)
    return drawn


def _summary(results: Results, order: list[str]) -> Figure:
    columns = [PLACED, COMPOSITE_OR_0, IMBALANCE, SATISFACTION, REGRET, plots.DECISIONS]
    rows = {
        regime: {name: solver["all_tasks"] for name, solver in found["solvers"].items()}
        for regime, found in results["regimes"].items()
    }
    return _captioned(plots.dots(rows, columns, order), results, "; times: median to 99th percentile")


def _over_each_other(results: Results) -> Figure:
    """Regimes as columns, figures as rows, a curve for each solver: the thesis's figure 4-3."""
    regimes, sizes = results["regimes"], results["question"]["tasks"]
    known = plots.styles(results["question"]["solvers"])
    figure, axes = plots.crossed(QUALITY, list(regimes), "tasks in the job", sharex=True)
    for line, column in zip(axes, QUALITY, strict=True):
        for axis, found in zip(line, regimes.values(), strict=True):
            if column is COMPOSITE:
                _best_known(axis, found, sizes, "#777777")
            for place, (name, style) in enumerate(known.items()):
                _by_tasks(axis, column, found, name, sizes, plots.beside(place, len(known)), label=name, **style.look)
            axis.set_xticks(sizes)
        if column is not PLACED:
            line[0].set_ylim(*_range_of_means(results, column))
    plots.legend_outside(figure, axes[0][0])
    return _captioned(figure, results, FEW_JOBS)


def _side_by_side(results: Results, order: list[str], column: Column) -> Figure:
    """A panel for each solver, best first, and in it a curve for each regime."""
    sizes, regimes = results["question"]["tasks"], results["regimes"]
    looks = plots.styles(list(regimes))
    figure, axes = plots.wrapped(len(order), ACROSS, width=2.2, height=1.9, sharex=True, sharey=True)
    for place, (axis, name) in enumerate(zip(axes, order, strict=True)):
        for i, (regime, style) in enumerate(looks.items()):
            if column is COMPOSITE:
                _best_known(axis, regimes[regime], sizes, style.colour)
            shift = plots.beside(i, len(looks))
            _by_tasks(axis, column, regimes[regime], name, sizes, shift, label=regime, **style.look)
        axis.set_title(name, fontsize=9)
        axis.set_xticks(sizes)
        if place >= len(order) - ACROSS:
            axis.set_xlabel("tasks in the job", fontsize=9)
            axis.tick_params(labelbottom=True)
        if not place % ACROSS:
            axis.set_ylabel(column.label, fontsize=9)
    axes[0].set_ylim(*_range_of_means(results, column))
    plots.legend_outside(figure, axes[0])
    return _captioned(figure, results, FEW_JOBS)


def _by_tasks(
    axis: Axes, column: Column, found: Results, solver: str, sizes: list[int], shift: float, **look: Any
) -> None:
    by_tasks = found["solvers"][solver]["by_tasks"]
    column.line(axis, [(size + shift, by_tasks[str(size)]) for size in sizes], **look)


def _range_of_means(results: Results, column: Column) -> tuple[float, float]:
    """Limits that show all means: bars of very few jobs would leave them no room."""
    figures = [
        figure[column.what]["mean"]
        for found in results["regimes"].values()
        for solver in (*found["solvers"].values(), *([found["best_known"]] if column is COMPOSITE else []))
        for figure in solver["by_tasks"].values()
        if figure[column.what]["n"]
    ]
    low, high = min(figures, default=0.0), max(figures, default=1.0)
    margin = 0.08 * (high - low) or 0.05
    return column.factor * (low - margin), column.factor * (high + margin)


def _over_time(results: Results, order: list[str]) -> Figure:
    """Quality against the time that decisions took: not the limit, which some do not need and others overrun."""
    rows, regimes, known = (COMPOSITE_OR_0, PLACED), results["regimes"], plots.styles(order)
    figure, axes = plots.crossed(rows, list(regimes), "median time of a decision, ms", sharex=True, height=3.1)
    for line, column in zip(axes, rows, strict=True):
        for axis, found in zip(line, regimes.values(), strict=True):
            for name, style in known.items():
                drawn = [(point["wall_ms"]["p50"], point) for point in found["anytime"][name]]
                if len({round(point[column.what]["mean"], 9) for _, point in drawn}) == 1:  # more time changes nothing
                    drawn = drawn[len(drawn) // 2 :][:1]
                column.line(axis, drawn, label=name, **style.look)
            plots.plain_log_axis(axis)
    plots.legend_outside(figure, axes[0][0])
    return _captioned(figure, results)


def _best_known(axis: Axes, found: Results, sizes: list[int], colour: str) -> None:
    known = {size: found["best_known"]["by_tasks"][str(size)]["composite"] for size in sizes}
    there = {size: each["mean"] for size, each in known.items() if each["n"]}
    axis.plot(list(there), list(there.values()), color=colour, linewidth=5, alpha=0.25, label="best known")


def _captioned(figure: Figure, results: Results, more: str = "") -> Figure:
    question = results["question"]
    text = (
        f"{words.network(question)}, {question['rounds']} rounds for each regime and number of tasks, seed "
        f"{question['seed']}; bars: 95 % confidence of the mean{more}"
    )
    return plots.caption(figure, text)
