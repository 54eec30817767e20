"""The online benchmark's results as tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots, words
from ces_experiments.common.command import Experiment
from ces_experiments.common.options import on_network
from ces_experiments.common.plots import Column
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import best_first, figure, of, plus_minus
from ces_experiments.queue.online import checked, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = {
    "accepted %": of("accepted", plus_minus, 1, 100),
    "mean wait, s": of("wait_s", plus_minus, 0),
    "CPU in use %": of("cpu", plus_minus, 1, 100),
    "links in use %": of("bandwidth", plus_minus, 1, 100),
    "L": of("load_imbalance", figure, "mean"),
    "D": of("bandwidth_satisfaction", figure, "mean"),
    "composite": of("composite", plus_minus),
    "ms p50": of("wall_ms", figure, "p50", 2),
    "ms p99": of("wall_ms", figure, "p99", 2),
    "most often blocked by": lambda found: ", ".join(list(found["blocked_by"])[:2]) or "-",
}
SHOWN = (
    Column("accepted", "jobs accepted, %", 100.0),
    Column("wait_s", "mean wait, s"),
    Column("cpu", "CPU in use, %", 100.0),
    Column("bandwidth", "links in use, %", 100.0),
    Column("composite", "composite over time"),
)
ACROSS = 3


def ranked(loads: Iterable[Mapping[str, Any]]) -> list[str]:
    """The solvers, best first, by the mean share of accepted jobs over these loads."""
    return best_first([found["solvers"] for found in loads], lambda solver: solver["accepted"]["mean"])


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    patience = question["patience_s"]
    waits = "as long as it takes" if patience is None else f"{patience:g} s at most"
    return (
        f"{words.jobs(question)}, {words.network(question)}, regime {question['regime']}, {question['repeats']} times, "
        f"seed {question['seed']}; policy {question['policy']}, jobs wait {waits}"
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One for each load, best first by acceptance."""
    return [
        Grid.of(
            f"{words.offered(load)}: {describe(results['question'])}.",
            "solver",
            COLUMNS,
            [(name, found["solvers"][name]) for name in ranked([found])],
        )
        for load, found in results["loads"].items()
    ]


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    order = ranked(results["loads"].values())
    rows = {f"load {load}": found["solvers"] for load, found in results["loads"].items()}
    drawn = {"summary.png": plots.dots(rows, [*SHOWN, plots.DECISIONS], order)}
    if len(order) <= plots.FEW and len(rows) > 1:
        drawn["by-load.png"] = _by_load(results["loads"], order)
    text = f"{describe(results['question'])}; bars: 95 % confidence; times: median to 99th percentile"
    return {name: plots.caption(picture, text) for name, picture in drawn.items()}


def _by_load(loads: Mapping[str, Any], order: list[str]) -> Figure:
    offered = [float(load) for load in loads]
    gap = min(high - low for low, high in pairwise(offered))
    figure, axes = plots.wrapped(len(SHOWN), ACROSS)
    for axis, column in zip(axes, SHOWN, strict=True):
        for place, (name, style) in enumerate(plots.styles(order).items()):
            shift = plots.beside(place, len(order)) * gap
            points = [(float(load) + shift, found["solvers"][name]) for load, found in loads.items()]
            column.line(axis, points, label=name, **style.look)
        axis.set(xlabel="offered load", ylabel=column.label, xticks=offered)
    plots.legend_outside(figure, axes[0])
    return figure


REPORT = Report(tables, pictures)
ONLINE = Experiment(on_network(checked, 20), measure, REPORT)
