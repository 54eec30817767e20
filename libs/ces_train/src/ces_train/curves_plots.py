"""Learning curves with and without the heuristic reward, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ces_core.bench.drawing import COLOURS, LINES, legend_outside, panels, save
from ces_train.curves_report import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: Mapping[str, tuple[str, float]] = {
    "composite_or_0": ("composite, 0 if unplaced", 1.0),
    "placed": ("jobs placed, %", 100.0),
    "bandwidth_satisfaction": ("bandwidth satisfaction D", 1.0),
    "load_imbalance": ("load imbalance L", 1.0),
}
LOOKS = [{"color": colour, "linestyle": line} for colour, line in zip(COLOURS[:2], LINES[:2], strict=True)]


def draw(results: Mapping[str, Any], out: Path) -> list[str]:
    """Draw the pictures under ``out``; gives their names."""
    question, regimes = results["question"], list(results["gain"])
    figure, axes = panels(len(ROWS), len(regimes), sharex=True, sharey="row")
    for line, (what, (label, factor)) in zip(axes, ROWS.items(), strict=True):
        for axis, regime in zip(line, regimes, strict=True):
            for (name, curves), look in zip(results["curves"].items(), LOOKS, strict=True):
                marks = [point["updates"] for point in results["variants"][name]["runs"][0]["points"]]
                _curve(axis, marks, curves[regime][what], factor, {"label": name} | look)
        line[0].set_ylabel(label)
    for axis, regime in zip(axes[0], regimes, strict=True):
        axis.set_title(regime)
    for axis in axes[-1]:
        axis.set_xlabel("updates")
    legend_outside(figure, axes[0][0])
    figure.supxlabel(
        f"{describe(question)}; lines: mean over the seeds, bands: least to most", fontsize=8, color="#444444"
    )
    save(figure, out / "curves.png")
    return ["curves.png"]


def _curve(
    axis: Axes, marks: Sequence[int], over_seeds: Sequence[Mapping[str, Any]], factor: float, look: Mapping[str, Any]
) -> None:
    there = [(mark, found) for mark, found in zip(marks, over_seeds, strict=True) if found["n"]]
    places = [mark for mark, _ in there]
    mean, least, most = ([factor * found[key] for _, found in there] for key in ("mean", "min", "max"))
    axis.fill_between(places, least, most, color=look["color"], alpha=0.2, linewidth=0)
    axis.plot(places, mean, linewidth=1.6, **look)
