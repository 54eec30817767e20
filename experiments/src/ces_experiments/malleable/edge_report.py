"""Tables and a picture of EdgeFlow among its peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import Spread, confidence, plus_minus
from ces_experiments.malleable.edge import EDGE, FIRST, Question, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SWEEPS = {
    "arrivals": "arrivals, times as fast",
    "gpus": "GPUs in the cloud",
    "servers": "edge servers",
    "speed": "speed of an edge server",
}
DRAWN = (FIRST, "elasticflow", "elasticflow-all", "afs", "pollux", "tiresias")


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """For each input one of the base, and one of all sweeps."""
    found = []
    for trace, points in results["inputs"].items():
        found.append(_base(trace, points[0]))
        found.append(_sweeps(trace, points[1:]))
    return found


def _where(point: Mapping[str, Any]) -> str:
    return (
        f"arrivals {point['arrivals']:g} times as fast, {point['gpus']} GPUs, {point['servers']} edge servers at "
        f"{point['speed']:g} of a GPU, deadlines "
        f"{point['ease']:g} times as far; at most {point['feasible']:.3f} could be in time, alone and at no cost"
    )


def _gain(found: Spread | None) -> str:
    if found is None:
        return "-"
    around = f" ± {confidence_of(found):.3f}" if found["n"] > 1 else ""
    return f"{found['mean']:+.3f}{around}"


def confidence_of(found: Spread) -> float:
    """Half of the 95 % interval of the mean, in either direction."""
    return confidence(found)[1]


def _base(trace: str, point: Mapping[str, Any]) -> Grid:
    rows = []
    for name, each in point["policies"].items():
        figures = [plus_minus(each[what], 3) for what in ("satisfied", "refused", "late")]
        few = [plus_minus(each["migrations"], 1), plus_minus(each["crossings"], 2), plus_minus(each["cost_s"], 0)]
        rows.append([name, *figures, _gain(point["gains"].get(name)), *few, plus_minus(each["edge_share"], 3)])
    columns = [
        "policy", "in time", "refused", "late", f"{FIRST} above it", "migrations a job", "of them cloud-edge",
        "cost a job, s", "work time on the edge",
    ]  # fmt: skip
    traces = ", ".join(
        f"{each['satisfied']['n']} for {name}" for name, each in point["policies"].items() if name in EDGE
    )
    title = f"{trace}: {_where(point)}; mean ± standard deviation over availability traces ({traces}), gains ± 95 %."
    return Grid(title, columns, rows)


def _sweeps(trace: str, points: Sequence[Mapping[str, Any]]) -> Grid:
    rows = []
    for point in points:
        best, name = max((each["satisfied"]["mean"], name) for name, each in _peers(point).items())
        ours = point["policies"][FIRST]["satisfied"]
        rows.append(
            [
                f"{SWEEPS[point['sweep']]}: {point[point['sweep']]:g}", plus_minus(ours, 3),
                f"{point['policies']['elasticflow']['satisfied']['mean']:.3f}", _gain(point["gains"]["elasticflow"]),
                f"{best:.3f} ({name})", f"{ours['mean'] - best:+.3f}",
            ]
        )  # fmt: skip
    columns = ["what", FIRST, "elasticflow", "gain on it", "best peer", "gain on that"]
    repeats = points[0]["policies"][FIRST]["satisfied"]["n"]
    return Grid(f"{trace}: shares of jobs in time, over {repeats} availability traces each.", columns, rows)


def _peers(point: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in point["policies"].items() if not name.startswith("edge")}


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    inputs = results["inputs"]
    figure, axes = plots.panels(len(inputs), len(SWEEPS), width=3.0, height=2.6, sharey="row")
    looks = plots.styles(DRAWN)
    for line, (trace, points) in zip(axes, inputs.items(), strict=True):
        line[0].set_ylabel(f"{trace}: jobs in time", fontsize=9)
        for axis, (what, label) in zip(line, SWEEPS.items(), strict=True):
            swept = sorted((p for p in points if p["sweep"] in (what, "base")), key=lambda point: point[what])
            for name in DRAWN:
                found = [(point[what], point["policies"][name]["satisfied"]) for point in swept]
                plots.curve(axis, found, 1.0, label=name, **looks[name].look)
            axis.set_xlabel(label, fontsize=9)
    plots.legend_outside(figure, axes[0][0])
    return {"sweeps.png": plots.caption(figure, "bars: 95 % confidence over availability traces")}


REPORT = Report(tables, pictures)
EDGEFLOW = Experiment(Question.of, measure, REPORT)
