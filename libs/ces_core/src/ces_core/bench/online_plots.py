"""The online benchmark's results as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ces_core.bench.drawing import DECISIONS, FEW, Column, beside, curve, dots, legend_outside, panels, save, styles
from ces_core.bench.online_report import describe, ranked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: Mapping[str, tuple[str, float]] = {
    "accepted": ("jobs accepted, %", 100.0),
    "wait_s": ("mean wait, s", 1.0),
    "cpu": ("CPU in use, %", 100.0),
    "bandwidth": ("links in use, %", 100.0),
    "composite": ("composite over time", 1.0),
}
ACROSS = 3


def draw(results: Mapping[str, Any], out: Path) -> list[str]:
    """Draw the pictures under ``out``; gives their names."""
    order = ranked(results)
    rows = {f"load {load}": found["solvers"] for load, found in results["loads"].items()}
    columns = [Column(what, label, factor) for what, (label, factor) in FIGURES.items()]
    pictures = {"summary.png": dots(rows, [*columns, DECISIONS], order)}
    if len(order) <= FEW and len(rows) > 1:
        pictures["by-load.png"] = _by_load(results, order)
    for name, figure in pictures.items():
        figure.supxlabel(
            f"{describe(results['question'])}; bars: 95 % confidence; times: median to 99th percentile",
            fontsize=8,
            color="#444444",
        )
        save(figure, out / name)
    return list(pictures)


def _by_load(results: Mapping[str, Any], order: list[str]) -> Figure:
    loads = results["loads"]
    figure, axes = panels(-(-len(FIGURES) // ACROSS), ACROSS)
    flat = [axis for line in axes for axis in line]
    offered = [float(load) for load in loads]
    gap = min(high - low for low, high in pairwise(offered))
    for axis, (what, (label, factor)) in zip(flat, FIGURES.items(), strict=False):
        for place, (name, style) in enumerate(styles(order).items()):
            shift = beside(place, len(order)) * gap
            points = [(float(load) + shift, found["solvers"][name][what]) for load, found in loads.items()]
            curve(axis, points, factor, label=name, **style.keywords())
        axis.set_ylabel(label)
        axis.set_xlabel("offered load")
        axis.set_xticks(offered)
    for axis in flat[len(FIGURES) :]:
        axis.set_visible(False)
    legend_outside(figure, flat[0])
    return figure
