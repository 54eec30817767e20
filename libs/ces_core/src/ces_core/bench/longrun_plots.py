"""The long-run benchmark's results as a picture: what is gained on the first solver, by load."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ces_core.bench.drawing import beside, confidence, legend_outside, panels, save, styles
from ces_core.bench.longrun_report import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAINS: Mapping[str, tuple[str, float]] = {
    "accepted": ("accepted, points", 100.0),
    "bandwidth_satisfaction": ("D of those that run", 1.0),
    "served": ("D of all that came", 1.0),
    "load_imbalance": ("load imbalance L", 1.0),
}


def draw(results: Mapping[str, Any], out: Path) -> list[str]:
    """Draw the pictures under ``out``; gives their names."""
    regimes, question = results["regimes"], results["question"]
    first, *others = question["solvers"]
    figure, axes = panels(len(regimes), len(GAINS), width=2.8, height=2.3, sharey="col")
    for line, (regime, loads) in zip(axes, regimes.items(), strict=True):
        for axis, (what, (label, factor)) in zip(line, GAINS.items(), strict=True):
            _differences(axis, loads, what, factor, others)
            axis.set_title(f"{regime}: {label}", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("offered load")
    legend_outside(figure, axes[0][0])
    figure.supxlabel(
        f"above {first}, on the same jobs and clusters; bars: 95 % confidence\n{describe(question)}",
        fontsize=8,
        color="#444444",
    )
    save(figure, out / "gains.png")
    return ["gains.png"]


def _differences(axis: Axes, loads: Mapping[str, Any], what: str, factor: float, solvers: list[str]) -> None:
    offered = [float(load) for load in loads]
    gap = min((high - low for low, high in pairwise(offered)), default=0.1)
    axis.axhline(0.0, color="#444444", linewidth=0.8)
    for place, (name, style) in enumerate(styles(solvers).items()):
        found = [each["differences"][name][what] for each in loads.values()]
        shift = beside(place, len(solvers)) * gap if len(solvers) > 1 else 0.0
        means = [factor * each["mean"] for each in found]
        bars = [factor * confidence(each)[1] for each in found]
        axis.errorbar([load + shift for load in offered], means, yerr=bars, label=name, **style.keywords())
    axis.set_xticks(offered)
    axis.set_xlim(min(offered) - gap / 2, max(offered) + gap / 2)
