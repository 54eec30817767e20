"""The scale benchmark's results as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ces_core.bench.drawing import (
    FEW,
    Column,
    curve,
    dots,
    legend_outside,
    panels,
    plain_log_axis,
    save,
    styles,
)
from ces_core.bench.scale_report import describe, entries

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMES = {"first_ms": "first decision, ms", "wall_ms": "paths known, ms"}
OTHERS = {
    "composite_or_0": "composite, 0 if unplaced",
    "regret": "below the best known",
    "memory_mib": "memory, MiB",
}
ACROSS = 3


def draw(results: Mapping[str, Any], out: Path) -> list[str]:
    """Draw the pictures under ``out``; gives their names."""
    order = entries(results)
    rows = {f"{nodes} nodes": found["entries"] for nodes, found in results["sizes"].items()}
    columns = [Column(what, label, times=True) for what, label in TIMES.items()]
    columns += [Column(what, label) for what, label in OTHERS.items()]
    pictures = {"summary.png": dots(rows, columns, order)}
    if len(order) <= FEW and len(rows) > 1:
        pictures["by-size.png"] = _by_size(results, order)
    for name, figure in pictures.items():
        figure.supxlabel(
            f"{describe(results['question'])}; times: median to 99th percentile; bars: 95 % confidence",
            fontsize=8,
            color="#444444",
        )
        save(figure, out / name)
    return list(pictures)


def _by_size(results: Mapping[str, Any], order: list[str]) -> Figure:
    sizes = [int(nodes) for nodes in results["sizes"]]
    shown = TIMES | OTHERS
    figure, axes = panels(-(-len(shown) // ACROSS), ACROSS)
    flat = [axis for line in axes for axis in line]
    for axis, (what, label) in zip(flat, shown.items(), strict=False):
        for name, style in styles(order).items():
            found = [each["entries"][name][what] for each in results["sizes"].values()]
            if what in TIMES:
                medians = [each["p50"] for each in found]
                over = [[0.0] * len(found), [each["p99"] - each["p50"] for each in found]]
                axis.errorbar(sizes, medians, yerr=over, label=name, elinewidth=0.8, **style.keywords())
            else:
                curve(axis, list(zip(sizes, found, strict=True)), 1.0, label=name, **style.keywords())
        axis.set_xscale("log")
        if what in TIMES:
            plain_log_axis(axis, "y")
        axis.set_ylabel(label)
        axis.set_xlabel("nodes")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.xaxis.minorticks_off()
    for axis in flat[len(shown) :]:
        axis.set_visible(False)
    legend_outside(figure, flat[0])
    return figure
