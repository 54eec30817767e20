"""How plots look. matplotlib is imported here, and only where something is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ces_experiments.common.spread import confidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
"""Told apart by people who see colours differently too (after Okabe and Ito's set)."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)))
FEW = 7
"""Maximum number of solvers that can be told apart in one panel."""


@dataclass(frozen=True)
class Style:
    """How one solver is drawn, the same in every plot."""

    colour: str
    marker: str
    line: Any

    @property
    def look(self) -> dict[str, Any]:
        """As matplotlib takes it."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": self.line,
            "linewidth": 1.3,
            "markersize": 4.5,
        }


def styles(names: Sequence[str]) -> dict[str, Style]:
    """By name: colours first, then other markers and lines with them."""
    found = {}
    for i, name in enumerate(names):
        again = i // len(COLOURS)
        marker = MARKERS[(i + again) % len(MARKERS)]
        found[name] = Style(COLOURS[i % len(COLOURS)], marker, LINES[again % len(LINES)])
    return found


def panels(
    rows: int, columns: int, *, width: float = 3.4, height: float = 2.7, **keywords: Any
) -> tuple[Figure, list[list[Axes]]]:
    """A figure of small plots side by side, sizes in inches each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **keywords)
    for axis in axes.flat:
        axis.grid(alpha=0.25, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, [list(row) for row in axes]


def crossed(
    rows: Sequence[Column], columns: Sequence[str], across: str, *, sharey: bool | str = "row", **keywords: Any
) -> tuple[Figure, list[list[Axes]]]:
    """A row of panels for each figure and a column for each name, labelled at the edges; ``across``: what the
    horizontal axes are."""
    figure, axes = panels(len(rows), len(columns), sharey=sharey, **keywords)
    for line, row in zip(axes, rows, strict=True):
        line[0].set_ylabel(row.label)
    for top, bottom, name in zip(axes[0], axes[-1], columns, strict=True):
        top.set_title(name)
        bottom.set_xlabel(across)
    return figure, axes


def wrapped(count: int, across: int, **keywords: Any) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` panels, ``across`` of them in a row."""
    figure, axes = panels(-(-count // across), across, **keywords)
    flat = [axis for line in axes for axis in line]
    for axis in flat[count:]:
        axis.set_visible(False)
    return figure, flat[:count]


def curve(
    axis: Axes, points: Sequence[tuple[float, Mapping[str, Any]]], factor: float, *, lying: bool = False, **look: Any
) -> None:
    """Means with their 95 % confidence, at the places that have any. ``lying``: places on the other axis, no line."""
    there = [(place, found) for place, found in points if found["n"]]
    places, means = [place for place, _ in there], [factor * found["mean"] for _, found in there]
    ranges = [confidence(found) for _, found in there]
    bars = [[factor * below for below, _ in ranges], [factor * above for _, above in ranges]]
    shared = {"elinewidth": 0.8, "ecolor": (look["color"], 0.5), **look}
    if lying:
        axis.errorbar(means, places, xerr=bars, fmt="o", markersize=4.5, **shared)
    else:
        axis.errorbar(places, means, yerr=bars, **shared)


def beside(place: int, count: int) -> float:
    """Points of one abscissa stand side by side, within half the way to the next: bars do not overlap."""
    return 0.5 * ((place + 0.5) / count - 0.5)


@dataclass(frozen=True)
class Column:
    """A figure and what an axis calls it: its mean with confidence; for ``times`` the median with a line to the 99th
    percentile, on a logarithmic axis."""

    what: str
    label: str
    factor: float = 1.0
    times: bool = False

    def line(self, axis: Axes, points: Sequence[tuple[float, Mapping[str, Any]]], **look: Any) -> None:
        """From place to place, what was found there."""
        found = [(place, each[self.what]) for place, each in points]
        if not self.times:
            curve(axis, found, self.factor, **look)
            return
        over = [[0.0] * len(found), [each["p99"] - each["p50"] for _, each in found]]
        medians = [each["p50"] for _, each in found]
        axis.errorbar([place for place, _ in found], medians, yerr=over, elinewidth=0.8, **look)


DECISIONS = Column("wall_ms", "decision, ms", times=True)
PLACED = Column("placed", "jobs placed, %", 100.0)
COMPOSITE = Column("composite", "composite")
COMPOSITE_OR_0 = Column("composite_or_0", "composite, 0 if unplaced")
IMBALANCE = Column("load_imbalance", "load imbalance L")
SATISFACTION = Column("bandwidth_satisfaction", "bandwidth satisfaction D")
REGRET = Column("regret", "below the best known")


def dots(
    rows: Mapping[str, Mapping[str, Mapping[str, Any]]], columns: Sequence[Column], order: Sequence[str]
) -> Figure:
    """Solvers as lines of text in ``order``: a row of panels for each of ``rows`` (label -> solver -> figures), and a
    column for each of ``columns``."""
    upwards = list(reversed(order))
    height = 0.7 + 0.2 * len(order)
    figure, axes = panels(len(rows), len(columns), width=2.3, height=height, sharex="col", sharey=True)
    for line, (title, found) in zip(axes, rows.items(), strict=True):
        for axis, column in zip(line, columns, strict=True):
            for place, name in enumerate(upwards):
                if column.times:
                    _range(axis, place, found[name][column.what])
                else:
                    curve(axis, [(place, found[name][column.what])], column.factor, lying=True, color=COLOURS[0])
            if column.times:
                plain_log_axis(axis)
        line[0].set_yticks(range(len(order)), upwards, fontsize=8)
        line[0].set_ylim(-0.7, len(order) - 0.3)
        line[0].set_ylabel(title, fontsize=12)
    for axis, column in zip(axes[-1], columns, strict=True):
        axis.set_xlabel(column.label)
    return figure


def _range(axis: Axes, place: float, found: Mapping[str, Any]) -> None:
    if found["n"]:
        axis.plot([found["p50"], found["p99"]], [place, place], color=COLOURS[0], linewidth=1)
        axis.plot([found["p50"]], [place], "o", color=COLOURS[0], markersize=4.5)


def plain_log_axis(axis: Axes, which: Literal["x", "y"] = "x") -> None:
    """A logarithmic axis that says 0.3, 1, 3 and not powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_xscale("log") if which == "x" else axis.set_yscale("log")
    scale = axis.xaxis if which == "x" else axis.yaxis
    scale.set_major_locator(LogLocator(subs=(1, 3), numticks=12))
    scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    scale.set_minor_formatter(NullFormatter())


def from_zero_log_axis(axis: Axes, linear_to: float, which: Literal["x", "y"] = "y") -> None:
    """A logarithmic axis that reaches 0: linear up to ``linear_to``."""
    from matplotlib.ticker import FuncFormatter, NullLocator, SymmetricalLogLocator

    set_scale = axis.set_xscale if which == "x" else axis.set_yscale
    set_scale("symlog", linthresh=linear_to, linscale=0.5)
    scale = axis.xaxis if which == "x" else axis.yaxis
    scale.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=linear_to, subs=[1.0, 3.0]))
    scale.set_minor_locator(NullLocator())
    scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


TIE = {"arrowstyle": "-", "linewidth": 0.5, "alpha": 0.5, "shrinkA": 1, "shrinkB": 3}
"""The line between a name and its point."""


@dataclass(frozen=True)
class Name:
    """A text for a point of the data."""

    text: str
    x: float
    y: float
    colour: str


def names_beside(axis: Axes, names: Sequence[Name], side: Literal["left", "right"], gap: float = 0.042) -> None:
    """The names in a column, inside at the left or outside at the right, in the order of their points, each tied to
    its own by a line. Limits and scales of the axis must be set. ``gap``: between lines of text, in heights of the
    axis."""
    to_axes = axis.transData + axis.transAxes.inverted()
    ordered = sorted(names, key=lambda name: float(to_axes.transform((name.x, name.y))[1]))
    heights = [min(max(float(to_axes.transform((name.x, name.y))[1]), 0.03), 0.97) for name in ordered]
    for name, height in zip(ordered, spaced(heights, gap), strict=True):
        axis.annotate(
            name.text,
            (name.x, name.y),
            xytext=(0.015 if side == "left" else 1.03, height),
            textcoords="axes fraction",
            fontsize=7,
            va="center",
            color=name.colour,
            arrowprops={"relpos": (1 if side == "left" else 0, 0.5), "color": name.colour, **TIE},
        )


def spaced(places: Sequence[float], gap: float, most: float = 0.98) -> list[float]:
    """Ascending places, moved up as little as it takes for ``gap`` between them, and then down from ``most``."""
    up: list[float] = []
    for place in places:
        up.append(max(place, up[-1] + gap) if up else place)
    down: list[float] = []
    for place in reversed(up):
        down.append(min(place, down[-1] - gap if down else most))
    return down[::-1]


def caption(figure: Figure, text: str) -> Figure:
    """What was asked, small and below; gives the figure."""
    figure.supxlabel(text, fontsize=8, color="#444444")
    return figure


def legend_outside(figure: Figure, axis: Axes) -> None:
    """One legend for all panels, to their right, each name once."""
    named = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(named.values(), named.keys(), loc="outside right upper", frameon=False, fontsize=9)
