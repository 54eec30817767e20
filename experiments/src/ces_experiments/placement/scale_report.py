"""The scale benchmark's results as tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.plots import COMPOSITE_OR_0, REGRET, Column
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import best_first, figure, of, percent, plus_minus
from ces_experiments.placement.scale import Question, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = {
    "first, ms": of("first_ms", figure, "p50", 1),
    "new job p50, ms": of("new_ms", figure, "p50", 2),
    "paths known p50, ms": of("wall_ms", figure, "p50", 2),
    "p99, ms": of("wall_ms", figure, "p99", 2),
    "placed %": of("placed", percent),
    "composite, 0 if unplaced": of("composite_or_0", plus_minus),
    "below best known": of("regret", figure, "mean", 4),
    "memory, MiB": of("memory_mib", figure, "p50", 0),
    "of it since the cluster was read": of("memory_grown_mib", figure, "p50", 0),
}
SHOWN = (
    Column("first_ms", "first decision, ms", times=True),
    Column("wall_ms", "paths known, ms", times=True),
    COMPOSITE_OR_0,
    REGRET,
    Column("memory_mib", "memory, MiB"),
)
ACROSS = 3


def ranked(results: Mapping[str, Any]) -> list[str]:
    """The solvers with their time limits, best first by the mean over all sizes."""
    return best_first(
        [found["entries"] for found in results["sizes"].values()], lambda entry: entry["composite_or_0"]["mean"]
    )


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    return (
        f"{question['jobs']} jobs of {question['tasks']} tasks on each size, {question['topology']} network, regime "
        f"{question['regime']}, seed {question['seed']}"
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One for each size."""
    question, order = results["question"], ranked(results)
    return [
        Grid.of(
            f"{nodes} nodes, {found['links']} links: {describe(question)}; best known: all that is here, and "
            f"{question['reference']} with {question['reference_s']:g} s for each job, which together placed "
            f"{found['placed_by_somebody']}.",
            "solver and time limit",
            COLUMNS,
            [(name, found["entries"][name]) for name in order],
        )
        for nodes, found in results["sizes"].items()
    ]


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    order = ranked(results)
    rows = {f"{nodes} nodes": found["entries"] for nodes, found in results["sizes"].items()}
    drawn = {"summary.png": plots.dots(rows, SHOWN, order)}
    if len(order) <= plots.FEW and len(rows) > 1:
        drawn["by-size.png"] = _by_size(results, order)
    text = f"{describe(results['question'])}; times: median to 99th percentile; bars: 95 % confidence"
    return {name: plots.caption(picture, text) for name, picture in drawn.items()}


def _by_size(results: Mapping[str, Any], order: list[str]) -> Figure:
    sizes = [int(nodes) for nodes in results["sizes"]]
    figure, axes = plots.wrapped(len(SHOWN), ACROSS)
    for axis, column in zip(axes, SHOWN, strict=True):
        for name, style in plots.styles(order).items():
            found = [each["entries"][name] for each in results["sizes"].values()]
            column.line(axis, list(zip(sizes, found, strict=True)), label=name, **style.look)
        axis.set_xscale("log")
        if column.times:
            plots.plain_log_axis(axis, "y")
        axis.set_ylabel(column.label)
        axis.set_xlabel("nodes")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.xaxis.minorticks_off()
    plots.legend_outside(figure, axes[0])
    return figure


REPORT = Report(tables, pictures)
SCALE = Experiment(Question, measure, REPORT)
