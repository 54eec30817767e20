"""Tables and a picture of the comparison on published traces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.malleable.elastic import Question, measure
from ces_experiments.malleable.inputs import TOLERANCES, USUAL_TOLERANCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One for each input."""
    table = _published if results["question"]["compat"] else _simulated
    return [table(name, found) for name, found in results["inputs"].items()]


def _title(name: str, found: Mapping[str, Any], how: str) -> str:
    bound = f"at most {found['feasible']:.3f} could be in time, alone and at no cost"
    return f"{name}, {found['jobs']} jobs, {how}; {bound}."


def _published(name: str, found: Mapping[str, Any]) -> Grid:
    rows = []
    for policy, each in found["policies"].items():
        golden = each["published"]
        away = [f"{golden:.3f}", f"{each['satisfied'] - golden:+.3f}"] if golden is not None else ["-", "-"]
        allowed = f"{TOLERANCES.get(policy, USUAL_TOLERANCE):.2f}" if golden is not None else "-"
        rows.append(
            [policy, str(each["on_time"]), f"{each['satisfied']:.3f}", *away, allowed, f"{each['seconds']:.1f}"]
        )
    columns = ["policy", "in time", "of submitted", "unmodified", "difference", "allowed", "run, s"]
    return Grid(_title(name, found, "counted as the public simulator does"), columns, rows)


def _simulated(name: str, found: Mapping[str, Any]) -> Grid:
    rows = [
        [
            policy, str(each["on_time"]), f"{each['satisfied']:.3f}", f"{each['refused']:.3f}", f"{each['late']:.3f}",
            f"{each['migrations']:.1f}", f"{each['cost_s']:.0f}", f"{each['seconds']:.1f}",
        ]
        for policy, each in found["policies"].items()
    ]  # fmt: skip
    columns = ["policy", "in time", "of submitted", "refused", "late", "resizes a job", "cost a job, s", "run, s"]
    return Grid(_title(name, found, "every event when it happens"), columns, rows)


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    inputs = results["inputs"]
    figure, axes = plots.panels(1, len(inputs), width=3.2, height=3.0, sharey="row")
    for axis, (name, found) in zip(axes[0], inputs.items(), strict=True):
        names = list(found["policies"])[::-1]
        axis.barh(names, [found["policies"][each]["satisfied"] for each in names], color=plots.COLOURS[0], height=0.6)
        axis.axvline(found["feasible"], color=plots.COLOURS[1], linewidth=1.0, linestyle="--")
        axis.set(title=name, xlim=(0, 1), xlabel="jobs in time, of those submitted")
        axis.title.set_fontsize(8)
    note = "dashed: what could be in time alone and at no cost"
    return {"in-time.png": plots.caption(figure, note)}


REPORT = Report(tables, pictures)
ELASTIC = Experiment(Question.of, measure, REPORT)
