"""What was found of emulated nodes, as tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.measure import summary
from ces_experiments.measure.question import Question

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("integer", "float", "memory")
NONE = "-"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    return [_nodes(results), _order(results), _predictions(results)]


def _nodes(results: Mapping[str, Any]) -> Grid:
    rows = []
    for share in sorted(results["question"]["shares"], reverse=True):
        found = [scores for _, of, scores, _ in summary.nodes(results) if of == share]
        levels = [each.level for each in found if each.level is not None]
        spreads, others = summary.spreads(results, share), summary.others(results, share)
        rows.append(
            [
                f"{share:.0%}",
                f"{min(levels):g} to {max(levels):g}" if levels else NONE,
                *(_range(summary.ratios(results, share, kind)) for kind in SHOWN),
                _percent(summary.middle(spreads)),
                _percent(max(spreads, default=None)),
                _percent(summary.middle(others)),
                f"{sum(each.noisy for each in found)} of {len(found)}",
            ]
        )
    title = (
        "Nodes by their share of the machine: what all threads do against all of the machine, divided by the share, "
        "least to most (1 is right); the spread of five repeats of one measurement of the CPU or memory; "
        "the most that others used of the machine meanwhile."
    )
    columns = ("node", "level", *SHOWN, "spread, median", "spread, most", "others, median", "noisy")
    return Grid(title, columns, rows)


def _order(results: Mapping[str, Any]) -> Grid:
    taus = summary.taus(results)
    cells = (
        [str(len(taus)), *(f"{each:.2f}" for each in (min(taus), sum(taus) / len(taus)))] if taus else ["0", NONE, NONE]
    )
    count = len(results["question"]["shares"])
    return Grid(
        f"The order of {count} nodes by their score in computing, against that by their share.",
        ("Kendall's tau of", "repeats", "least", "mean"),
        [["all repeats", *cells]],
    )


def _predictions(results: Mapping[str, Any]) -> Grid:
    found, rows = list(summary.errors(results)), []
    groups = [
        (f"{name}, {processes} process{'es' if processes > 1 else ''}", [
            each for each in found if (each["program"], each["processes"]) == (name, processes)
        ])
        for name in results["question"]["programs"]
        for processes in results["question"]["processes"]
    ]  # fmt: skip
    groups += [("all", found), ("all beside which others were quiet", [each for each in found if each["quiet"]])]
    for name, some in groups:
        within = sum(each["within"] for each in some)
        rows.append(
            [
                name,
                str(len(some)),
                *(_percent(summary.middle([each[key] for each in some])) for key in ("cpu", "step")),
                _percent(max((each["step"] for each in some), default=None)),
                _percent(summary.middle([each["unscaled"] for each in some])),
                _percent(within / len(some)) if some else NONE,
            ]
        )
    title = (
        "What a step takes on one node, predicted by what it took on another: by which share that was wrong (medians, "
        "and the most); if all nodes were taken to be alike; and how many lay in the interval."
    )
    columns = ("program", "predictions", "CPU time", "time", "time, most", "time, if alike", "in the interval")
    return Grid(title, columns, rows)


def _range(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}" if values else NONE


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.1%}"


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Scores over shares, and predicted times over those that were seen."""
    figure, [[left, right]] = plots.panels(1, 2, width=4.2, height=3.2)
    styles = plots.styles(SHOWN)
    for kind in SHOWN:
        points = [
            (share, raw.score)
            for _, share, scores, _ in summary.nodes(results)
            if (raw := summary.all_threads(scores, kind)) is not None
        ]
        look = styles[kind]
        left.plot(*zip(*points, strict=True), look.marker, color=look.colour, markersize=4, label=kind)
    left.set(xlabel="share of the machine", ylabel="score, all threads", xlim=(0, 1.05), ylim=(0, None))
    left.legend(frameon=False, fontsize=8)
    names = results["question"]["programs"]
    styles = plots.styles(names)
    found = list(summary.errors(results))
    for name in names:
        some = [(each["seen_ms"], each["predicted_ms"]) for each in found if each["program"] == name]
        if some:
            look = styles[name]
            right.plot(*zip(*some, strict=True), look.marker, color=look.colour, markersize=3, label=name)
    if found:
        ends = [min(each["seen_ms"] for each in found), max(each["seen_ms"] for each in found)]
        right.plot(ends, ends, color="#888888", linewidth=0.8)
    right.set(xlabel="time of a step, ms", ylabel="predicted")
    plots.plain_log_axis(right, "x")
    plots.plain_log_axis(right, "y")
    right.legend(frameon=False, fontsize=7)
    return {"measure.png": figure}


REPORT = Report(tables, pictures)


def measure(question: Question, progress: Any) -> Any:
    """Imported late: documentation is made where no control groups are."""
    from ces_experiments.measure.run import measure as look

    return look(question, progress)


MEASURE = Experiment(Question, measure, REPORT)
