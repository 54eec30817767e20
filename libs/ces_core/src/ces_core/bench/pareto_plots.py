"""The Pareto benchmark's results as a picture: a front for each solver."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ces_core.bench.drawing import confidence, legend_outside, panels, save, styles
from ces_core.bench.pareto_report import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = "load_imbalance", "bandwidth_satisfaction"


def draw(results: Mapping[str, Any], out: Path) -> list[str]:
    """Draw the pictures under ``out``; gives their names."""
    question, regimes = results["question"], results["regimes"]
    figure, axes = panels(1, len(regimes), width=4.4, height=4.0)
    looks = styles(question["solvers"])
    for axis, (regime, found) in zip(axes[0], regimes.items(), strict=True):
        for place, (name, style) in enumerate(looks.items()):
            thick = {"linewidth": max(4.0 - place, 1.2), "markersize": max(9.0 - 1.5 * place, 4.0)}
            _front(axis, found["solvers"][name]["by_balance"], {"label": name} | style.keywords() | thick)
        axis.set_title(f"{regime}, {found['placed_by_all']} jobs")
        axis.set_xlabel("load imbalance L")
        axis.set_ylim(top=min(axis.get_ylim()[1], 1.03))
    axes[0][0].set_ylabel("bandwidth satisfaction D")
    legend_outside(figure, axes[0][0])
    weights = ", ".join(f"{weight:g}" for weight in question["balance"])
    figure.supxlabel(
        f"{describe(question)}; points, from right to left: weight of balance {weights};\n"
        "bars: 95 % confidence of the mean, what is peculiar to each job taken off; further up and left is better",
        fontsize=8,
        color="#444444",
    )
    save(figure, out / "front.png")
    return ["front.png"]


def _front(axis: Axes, by_balance: Mapping[str, Any], look: dict[str, Any]) -> None:
    """Fronts that lie on each other stay visible where the earlier ones are thicker."""
    given = [each for each in by_balance.values() if each["load_imbalance"]["n"]]
    if not given:
        return
    means = [[each[what]["mean"] for each in given] for what in AXES]
    bars = [
        [list(side) for side in zip(*(confidence(each[f"{what}_within"]) for each in given), strict=True)]
        for what in AXES
    ]
    look = {"elinewidth": 0.8, "ecolor": (look["color"], 0.35), **look}
    axis.errorbar(means[0], means[1], xerr=bars[0], yerr=bars[1], **look)
