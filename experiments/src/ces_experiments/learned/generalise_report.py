"""The generalisation benchmark's results as tables, and as a picture for each regime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ces_core.model.topologies import SHAPES
from ces_core.model.topologies.graphml import at_hand
from ces_experiments.common import options, plots, words
from ces_experiments.common.plots import DECISIONS, PLACED, REGRET, Column, Style
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import Cell, figure, of, percent
from ces_experiments.learned.generalise import Network, Question, summarise
from ces_experiments.placement.experiment import on_single_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS = (REGRET, PLACED, DECISIONS)
LINEAR_TO = 1e-3
"""Distances below this are drawn on a linear axis."""


def asked(*, nodes: Sequence[int], topologies: str | None, **values: Any) -> Question:
    """About random networks of these sizes, and files, by name or all at hand. Raises typer.BadParameter."""
    files = at_hand() if topologies is None else tuple(filter(None, topologies.split(",")))
    networks = [Network("random", size) for size in nodes]
    networks += [Network(options.network(file, None)) for file in files]
    if not networks:
        raise typer.BadParameter("neither sizes nor files are named", param_hint="--nodes")
    if shapes := [file for file in files if file in SHAPES]:
        raise typer.BadParameter(f"{shapes[0]!r} is no GraphML file", param_hint="--topologies")
    return Question(networks=tuple(networks), **values)


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    return f"{question['rounds']} jobs for each network, seed {question['seed']}, {words.limit(question)}"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """For each regime and number of tasks one of quality and one of times."""
    question, found = results["question"], []
    for regime, by_tasks in results["regimes"].items():
        for tasks, by_network in by_tasks.items():
            known = ", ".join(f"{case['placed_by_somebody']}" for case in by_network.values())
            proven = ", ".join(f"{case['proven_optima']}" for case in by_network.values())
            title = f"Regime {regime}, {tasks} tasks"
            quality = (
                f"{title}, {describe(question)}: mean distance of the composite to the best known, over what was "
                "placed; behind it how many jobs were placed, in %. Placed by some solver, from left to right: "
                f"{known}; optima proven: {proven}."
            )
            found.append(_table(quality, question["solvers"], by_network, _cell))
            times = f"{title}: median time of a decision with its paths known, ms."
            found.append(_table(times, question["solvers"], by_network, of("wall_ms", figure, "p50", 2)))
    return found


def _table(title: str, solvers: Sequence[str], by_network: Mapping[str, Any], cell: Cell) -> Grid:
    rows = [[name, *(cell(case["solvers"][name]) for case in by_network.values())] for name in solvers]
    return Grid(title, ("solver", *by_network), rows)


def _cell(solver: Mapping[str, Any]) -> str:
    return f"{figure(solver['regret'], 'mean', 4)}, {percent(solver['placed'])} %"


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    return {f"{regime}.png": _regime(results, regime) for regime in results["regimes"]}


def _regime(results: Mapping[str, Any], regime: str) -> Figure:
    """Columns: numbers of tasks, over the size of random networks and on networks from files."""
    by_tasks, networks = results["regimes"][regime], results["networks"]
    random = {
        label: networks[label]["nodes"]
        for label, network in zip(networks, results["question"]["networks"], strict=True)
        if network["nodes"] is not None
    }
    files = {label: found["nodes"] for label, found in networks.items() if label not in random}
    columns = [(tasks, group) for tasks in by_tasks for group in (random, files) if group]
    figure, axes = plots.crossed(ROWS, [f"{tasks} tasks" for tasks, _ in columns], "", width=3.3, height=2.5)
    looks = plots.styles(results["question"]["solvers"])
    plots.from_zero_log_axis(axes[0][0], LINEAR_TO)
    plots.plain_log_axis(axes[-1][0], "y")
    for line, column in zip(axes, ROWS, strict=True):
        for axis, (tasks, group) in zip(line, columns, strict=True):
            found = [by_tasks[tasks][name]["solvers"] for name in group]
            _panel(axis, list(group.values()) if group is random else None, found, column, looks)
            if group is files:
                names = [f"{name} {size}" for name, size in group.items()] if line is axes[-1] else []
                axis.set_xticks(range(len(group)), names, fontsize=7, rotation=30, ha="right")
            elif line is axes[-1]:
                axis.set_xlabel("nodes of a random network")
    axes[0][0].set_ylim(bottom=0)
    plots.legend_outside(figure, axes[0][0])
    text = (
        f"regime {regime}, {describe(results['question'])}; bars: 95 % confidence of the mean; times: median to 99th "
        "percentile"
    )
    return plots.caption(figure, text)


def _panel(
    axis: Axes, sizes: list[int] | None, found: list[Mapping[str, Any]], column: Column, looks: Mapping[str, Style]
) -> None:
    """``sizes``: the places on a logarithmic axis; None: side by side, without lines between them."""
    for place, (name, style) in enumerate(looks.items()):
        shift = plots.beside(place, len(looks))
        if sizes is None:
            places, look = [i + 1.4 * shift for i in range(len(found))], style.look | {"linestyle": "none"}
        else:
            places, look = [size * 1.12**shift for size in sizes], style.look
        column.line(axis, list(zip(places, [each[name] for each in found], strict=True)), label=name, **look)
    if sizes is not None:
        axis.set_xscale("log")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.minorticks_off()


REPORT = Report(tables, pictures)
GENERALISE = on_single_jobs(options.proving(asked), summarise, REPORT)
