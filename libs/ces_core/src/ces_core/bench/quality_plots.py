"""Quality against decision time as a picture: a point or a curve for each solver, with its name beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ces_core.bench.drawing import (
    Name,
    Style,
    curve,
    from_zero_log_axis,
    names_beside,
    panels,
    plain_log_axis,
    save,
    styles,
)
from ces_core.bench.quality_report import describe, points
from ces_core.solvers.baselines import BASELINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY = Style("#777777", "o", "-")
"""Of the baselines; their names tell them apart."""
LINEAR_TO = 1e-4
"""Below this, differences are too small for a logarithm to make much of."""


def draw(results: Mapping[str, Any], out: Path) -> list[str]:
    """Draw the pictures under ``out``; gives their names."""
    regimes, question = results["regimes"], results["question"]
    baselines = {solver.name for solver in BASELINES}
    known = styles([name for name in question["solvers"] if name not in baselines])
    looks = {name: known.get(name, GREY) for name in question["solvers"]}
    figure, axes = panels(1, len(regimes), width=4.6, height=4.8, sharex=True, sharey=True)
    for axis, (regime, found) in zip(axes[0], regimes.items(), strict=True):
        _panel(axis, found, looks)
        axis.set_title(regime)
        axis.set_xlabel("median time of a decision, ms")
    axes[0][0].set_ylabel("composite below the best known,\njobs without a place counted whole")
    least = min(
        point["wall_ms"]["p50"] for found in regimes.values() for given in points(found).values() for point in given
    )
    axes[0][0].set_xlim(left=least / 25 if baselines & set(looks) else least / 2)
    axes[0][0].set_ylim(bottom=0)
    for axis, found in zip(axes[0], regimes.values(), strict=True):
        _name(axis, found, looks)
    figure.supxlabel(
        f"{describe(question)}; bars: 95 % confidence of the mean; lower and further left is better",
        fontsize=8,
        color="#444444",
    )
    save(figure, out / "quality.png")
    return ["quality.png"]


def _panel(axis: Axes, found: Mapping[str, Any], looks: Mapping[str, Style]) -> None:
    plain_log_axis(axis)
    from_zero_log_axis(axis, LINEAR_TO)
    for name, given in points(found).items():
        drawn = [(point["wall_ms"]["p50"], point["shortfall"]) for point in given]
        curve(axis, drawn, 1.0, **looks[name].keywords())


def _name(axis: Axes, found: Mapping[str, Any], looks: Mapping[str, Style]) -> None:
    """Baselines decide fast: their names stand at the left."""
    ends = {name: given[-1] for name, given in points(found).items()}
    for side in ("left", "right"):
        names = [
            Name(name, end["wall_ms"]["p50"], end["shortfall"]["mean"], looks[name].colour)
            for name, end in ends.items()
            if (looks[name] is GREY) == (side == "left")
        ]
        names_beside(axis, names, "left" if side == "left" else "right")
