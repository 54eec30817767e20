"""The simulated regions' figures as tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots, words
from ces_experiments.common.command import Experiment
from ces_experiments.common.plots import Column
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import Cell, Spread, figure, gain, plus_minus
from ces_experiments.regions.experiment import Question, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NONE = {"n": 0}


def _told(key: str, form: Any, *arguments: Any) -> Cell:
    """A dash where this way has no such figure."""
    return lambda found: form(found["ways"].get(key, NONE), *arguments)


def _percent(found: Spread) -> str:
    return f"{found['mean'] * 100:.2f}" if found["n"] else "-"


def _beside(key: str, factor: float, digits: int) -> Cell:
    return lambda found: gain(found["beside"].get(key, NONE), factor, digits)


DECIDED = {
    "accepted %": _told("accepted", plus_minus, 1, 100),
    "beside central, points": _beside("accepted", 100, 1),
    "work accepted %": _told("work", plus_minus, 1, 100),
    "beside central, points ": _beside("work", 100, 1),
    "mean wait, s": _told("wait_s", plus_minus, 0),
    "beside central, s": _beside("wait_s", 1, 0),
    "satisfaction": _told("satisfaction", figure, "mean"),
    "elsewhere %": lambda found: f"{found['ways']['elsewhere']['mean'] * 100:.1f}",
    "looks at a job": _told("asks", figure, "mean", 1),
    "decision, CPU ms": _told("decision_ms", figure, "mean", 2),
    "p99, ms": _told("decision_p99_ms", figure, "mean", 1),
    "solver for a job, CPU ms": _told("solver_ms", figure, "mean", 1),
}
SAID = {
    "offers": _told("offers", figure, "mean", 2),
    "bids": _told("bids", figure, "mean", 2),
    "holds refused %": _told("refused", _percent),
    "overtaken %": _told("overtaken", _percent),
    "messages": _told("messages", figure, "mean", 1),
    "bytes": _told("bytes", figure, "mean", 0),
    "latency, s": _told("latency_s", figure, "mean", 2),
    "p99, s": _told("latency_p99_s", figure, "mean", 2),
    "summaries/s": _told("summaries_per_s", figure, "mean", 2),
    "their bytes/s": _told("summary_bytes_per_s", figure, "mean", 0),
    "following, messages/s": _told("following_per_s", figure, "mean", 2),
    "choice, µs": _told("choice_us", figure, "mean", 0),
}
GROWS = (
    Column("accepted", "jobs accepted, %", 100.0),
    Column("work", "work accepted, %", 100.0),
    Column("decision_ms", "a decision, CPU ms"),
    Column("solver_ms", "a job, CPU ms"),
)


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    return (
        f"regions of {question['nodes']} nodes and {question['jobs']} jobs each, of "
        f"{words.span(question['tasks'])} tasks and {question['duration_s']:g} s on average, "
        f"which wait {question['patience_s']:g} s at most; regime {question['regime']}, solver "
        f"{question['solver']}, {question['wire_s'] * 1e3:g} ms between regions, "
        f"{question['seeds']} seeds from {question['seed']}"
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What was decided in all shapes; then what regions said to each other."""
    shapes, question = results["shapes"], results["question"]
    names = _short(question, list(shapes))
    rows = [
        (f"{short}{way}", {"ways": each, "beside": found["beside"][way]})
        for short, found in zip(names, shapes.values(), strict=True)
        for way, each in found["ways"].items()
    ]
    said = [(name, found) for name, found in rows if "summaries_per_s" in found["ways"]]
    title = "For each job that was placed elsewhere, and, per second, what one region says besides."
    asked = f"{', '.join(shapes) if len(shapes) == 1 else _varied(question)}: {describe(question)}."
    return [Grid.of(asked, "", DECIDED, rows), *([Grid.of(title, "", SAID, said)] if said else [])]


def _varied(question: Mapping[str, Any]) -> str:
    counts, loads = (", ".join(f"{each:g}" for each in question[what]) for what in ("regions", "loads"))
    return f"{counts} regions, load {loads}, {' and '.join(question['homes'])} homes"


def _short(question: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Of each shape, what not all shapes share."""
    varied = [len(question[what]) > 1 for what in ("regions", "loads", "homes")]
    parts = [[part for part, counts in zip(name.split(", "), varied, strict=True) if counts] for name in names]
    return [f"{', '.join(each)}: " if each else "" for each in parts]


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file: shapes beside each other, and how it grows where regions are more and more."""
    shapes, question = results["shapes"], results["question"]
    note = (
        f"{question['nodes']} nodes and {question['jobs']} jobs for each region, jobs of {question['duration_s']:g} s, "
        f"{question['seeds']} seeds; bars: 95 % confidence"
    )
    drawn = {}
    if len(question["regions"]) > 1:
        drawn["growth.png"] = _growth(shapes, question)
    else:
        rows = {
            name.partition(", ")[2].replace(", ", "\n").replace(" homes", "\nhomes"): found["ways"]
            for name, found in shapes.items()
        }
        drawn["ways.png"] = plots.dots(rows, GROWS, question["ways"])
    return {name: plots.caption(picture, note) for name, picture in drawn.items()}


def _growth(shapes: Mapping[str, Any], question: Mapping[str, Any]) -> Figure:
    """Of the first load and homes."""
    marks = f"load {question['loads'][0]:g}, {question['homes'][0]} homes"
    found = [each for name, each in shapes.items() if name.endswith(marks)]
    figure, axes = plots.wrapped(len(GROWS), 4, sharex=True)
    for axis, column in zip(axes, GROWS, strict=True):
        for name, style in plots.styles(question["ways"]).items():
            points = [(each["regions"], each["ways"][name]) for each in found if name in each["ways"]]
            column.line(axis, points, label=name, **style.look)
        axis.set_xscale("log", base=2)
        axis.set(xlabel="regions", ylabel=column.label, xticks=question["regions"])
        axis.set_xticklabels([str(count) for count in question["regions"]])
    plots.legend_outside(figure, axes[0])
    return figure


REPORT = Report(tables, pictures)
REGIONS = Experiment(Question.of, measure, REPORT)
