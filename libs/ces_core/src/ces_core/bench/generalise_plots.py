"""The generalisation benchmark's results as pictures: one for each regime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ces_core.bench.drawing import (
    Style,
    beside,
    curve,
    from_zero_log_axis,
    legend_outside,
    panels,
    plain_log_axis,
    save,
    styles,
)
from ces_core.bench.generalise_report import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: Mapping[str, tuple[str, float]] = {
    "regret": ("below the best known", 1.0),
    "placed": ("jobs placed, %", 100.0),
    "wall_ms": ("decision, ms", 1.0),
}
LINEAR_TO = 1e-3
"""Distances below this are drawn on a linear axis."""


def draw(results: Mapping[str, Any], out: Path) -> list[str]:
    """Draw the pictures under ``out``; gives their names."""
    return [_regime(results, regime, out) for regime in results["regimes"]]


def _regime(results: Mapping[str, Any], regime: str, out: Path) -> str:
    """Columns: numbers of tasks, over the size of random networks and on networks from files."""
    by_tasks, networks = results["regimes"][regime], results["question"]["networks"]
    labels = list(results["networks"])
    drawn = [label for label, network in zip(labels, networks, strict=True) if network["nodes"] is not None]
    files = [label for label in labels if label not in drawn]
    columns = [(tasks, group) for tasks in by_tasks for group in (drawn, files) if group]
    figure, axes = panels(len(ROWS), len(columns), width=3.3, height=2.5, sharey="row")
    looks = styles(results["question"]["solvers"])
    for line, (what, (label, factor)) in zip(axes, ROWS.items(), strict=True):
        if what == "regret":
            from_zero_log_axis(line[0], LINEAR_TO)
        elif what == "wall_ms":
            plain_log_axis(line[0], "y")
        for axis, (tasks, group) in zip(line, columns, strict=True):
            sizes = [results["networks"][name]["nodes"] for name in group]
            found = [by_tasks[tasks][name]["solvers"] for name in group]
            _panel(axis, sizes if group is drawn else None, found, what, factor, looks)
            if group is files:
                names = [f"{name} {size}" for name, size in zip(group, sizes, strict=True)]
                axis.set_xticks(
                    range(len(group)), names if line is axes[-1] else [], fontsize=7, rotation=30, ha="right"
                )
            elif line is axes[-1]:
                axis.set_xlabel("nodes of a random network")
            if line is axes[0]:
                axis.set_title(f"{tasks} tasks")
        line[0].set_ylabel(label)
    axes[0][0].set_ylim(bottom=0)
    legend_outside(figure, axes[0][0])
    figure.supxlabel(
        f"regime {regime}, {describe(results['question'])}; bars: 95 % confidence of the mean; times: median to 99th "
        "percentile",
        fontsize=8,
        color="#444444",
    )
    save(figure, out / f"{regime}.png")
    return f"{regime}.png"


def _panel(
    axis: Axes,
    sizes: list[int] | None,
    found: list[Mapping[str, Any]],
    what: str,
    factor: float,
    looks: Mapping[str, Style],
) -> None:
    """``sizes``: the places on a logarithmic axis; None: side by side, without lines between them."""
    for place, (name, style) in enumerate(looks.items()):
        shift = beside(place, len(looks))
        figures = [solvers[name][what] for solvers in found]
        places = (
            [i + 1.4 * shift for i in range(len(found))] if sizes is None else [size * 1.12**shift for size in sizes]
        )
        look = style.keywords() | ({"linestyle": "none"} if sizes is None else {})
        if what == "wall_ms":
            medians = [each["p50"] for each in figures]
            over = [[0.0] * len(figures), [each["p99"] - each["p50"] for each in figures]]
            axis.errorbar(places, medians, yerr=over, label=name, elinewidth=0.8, **look)
        else:
            curve(axis, list(zip(places, figures, strict=True)), factor, label=name, **look)
    if sizes is not None:
        axis.set_xscale("log")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.minorticks_off()
