"""Quality against decision time as tables, and as a picture: a point or a curve for each solver, with its name
beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_core.baselines import BASELINES
from ces_experiments.common import plots, words
from ces_experiments.common.options import proving
from ces_experiments.common.plots import Column, Name, Style
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import figure, of, percent, plus_minus
from ces_experiments.placement.comparison import Question
from ces_experiments.placement.experiment import on_single_jobs
from ces_experiments.placement.summary import summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = {
    "ms p50": of("wall_ms", figure, "p50", 2),
    "ms p99": of("wall_ms", figure, "p99", 2),
    "placed %": of("placed", percent),
    "composite, 0 if unplaced": of("composite_or_0", plus_minus),
    "below best known": of("regret", figure, "mean", 5),
    "the same, unplaced counted whole": of("shortfall", figure, "mean", 5),
}
LACKING = Column("shortfall", "composite below the best known,\njobs without a place counted whole")
GREY = Style("#777777", "o", "-")
"""Of the baselines; their names tell them apart."""
LINEAR_TO = 1e-4
"""Below this, differences are too small for a logarithm to make much of."""

Points = Mapping[str, list[Mapping[str, Any]]]


def points(found: Mapping[str, Any]) -> Points:
    """Solver -> its figures under growing time limits; once where limits make no difference to its answers."""
    return {name: given[:1] if _alike(given) else list(given) for name, given in found["anytime"].items()}


def _alike(given: list[Mapping[str, Any]]) -> bool:
    return len({(each["placed"]["mean"], round(each["composite_or_0"]["mean"], 6)) for each in given}) == 1


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    each = f"{question['rounds']} for each number of tasks"
    return f"jobs of {words.span(question['tasks'])} tasks, {words.network(question)}, {each}, seed {question['seed']}"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One table for each regime; in each, the fastest solver first."""
    return [_table(results["question"], regime, found) for regime, found in results["regimes"].items()]


def _table(question: Mapping[str, Any], regime: str, found: Mapping[str, Any]) -> Grid:
    title = (
        f"Regime {regime}: {found['instances']} {describe(question)}; {found['placed_by_somebody']} have a place as "
        f"far as is known, {found['proven_optima']} optima are proven. One line where time limits change no answer."
    )
    rows = [
        (name if len(given) == 1 else f"{name} @ {point['limit_s'] * 1e3:g} ms", point)
        for name, given in points(found).items()
        for point in given
    ]
    rows.sort(key=lambda row: (row[1]["wall_ms"]["p50"], row[0]))
    return Grid.of(title, "solver and time limit", COLUMNS, rows)


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """File name -> picture."""
    question, drawn = results["question"], [points(found) for found in results["regimes"].values()]
    baselines = {solver.name for solver in BASELINES}
    known = plots.styles([name for name in question["solvers"] if name not in baselines])
    looks = {name: known.get(name, GREY) for name in question["solvers"]}
    across = "median time of a decision, ms"
    figure, [axes] = plots.crossed([LACKING], list(results["regimes"]), across, width=4.6, height=4.8, sharex=True)
    for axis, solvers in zip(axes, drawn, strict=True):
        plots.plain_log_axis(axis)
        plots.from_zero_log_axis(axis, LINEAR_TO)
        for name, given in solvers.items():
            LACKING.line(axis, [(point["wall_ms"]["p50"], point) for point in given], **looks[name].look)
    least = min(point["wall_ms"]["p50"] for solvers in drawn for given in solvers.values() for point in given)
    axes[0].set_xlim(left=least / 25 if baselines & set(looks) else least / 2)
    axes[0].set_ylim(bottom=0)
    for axis, solvers in zip(axes, drawn, strict=True):
        _name(axis, solvers, looks)
    text = f"{describe(question)}; bars: 95 % confidence of the mean; lower and further left is better"
    return {"quality.png": plots.caption(figure, text)}


def _name(axis: Axes, solvers: Points, looks: Mapping[str, Style]) -> None:
    """Baselines decide fast: their names stand at the left."""
    sides: dict[bool, list[Name]] = {True: [], False: []}
    for name, given in solvers.items():
        x, y = given[-1]["wall_ms"]["p50"], given[-1]["shortfall"]["mean"]
        sides[looks[name] is GREY].append(Name(name, x, y, looks[name].colour))
    plots.names_beside(axis, sides[True], "left")
    plots.names_beside(axis, sides[False], "right")


def asked(*, limits: tuple[float, ...], **values: Any) -> Question:
    """A question about the longest of the rising ``limits``, with the others in ``anytime``. Solvers warm up under the
    longest, so that nothing is left to be compiled under the clock."""
    return Question(topology="random", time_limit_s=limits[-1], anytime=limits[:-1], **values)


REPORT = Report(tables, pictures)
QUALITY = on_single_jobs(proving(asked), summarise, REPORT)
