"""Tables and a picture of what learned to send tasks to clusters. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from ces_experiments.common import plots
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import confidence, spread
from ces_experiments.gpus.clusters_report import FIGURES
from ces_experiments.gpus.variants import STUDIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHOLE = ("algorithms", "ours", "counting", "exploring", "advised")
"""Studies of which every figure is told, not only what learning came to."""


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """A table for each study, and of some a second one."""
    found = []
    for study in results["question"]["studies"]:
        rows = _ran(results, study)
        if rows:
            found.append(_came_to(results, study, rows))
        if rows and study in WHOLE:
            found.append(_whole(results, study, rows))
    return found


def _ran(results: Mapping[str, Any], study: str) -> dict[str, Any]:
    """Its variants with at least one run; none where there is nothing to compare."""
    found = {name: each for name in STUDIES[study] if (each := results["variants"].get(name)) and each["runs"]}
    return found if len(found) > 1 else {}


def _over(runs: Iterable[Mapping[str, Any]], figure: str) -> dict[str, Any]:
    return spread(run["figures"][figure]["mean"] for run in runs)


def _about(results: Mapping[str, Any], study: str) -> str:
    return f"{study.capitalize()}: means over {results['question']['draws']} draws that were not learned from"


def _scenario(variant: Mapping[str, Any]) -> str:
    return str(variant["env"].get("scenario", "D1"))


def _came_to(results: Mapping[str, Any], study: str, rows: Mapping[str, Any]) -> Grid:
    table = []
    for scenario in dict.fromkeys(map(_scenario, rows.values())):
        for rule, figures in results["rules"].get(scenario, {}).items():
            said = [f"{figures[key]['mean']:.{digits}f}" for key, digits in _SHORT.values()]
            table.append([f"rule {rule}, {scenario}", "-", "-", "-", *said, "-"])
    for name, variant in rows.items():
        runs = variant["runs"]
        placed = _over(runs, "deployed")
        said = [f"{_over(runs, key)['mean']:.{digits}f}" for key, digits in _SHORT.values()]
        said[0] += f" ± {confidence(placed)[1]:.1f}"
        episodes, seconds = (fmean(run[key] for run in runs) for key in ("episodes", "cpu_s"))
        worst_best = f"{placed['min']:.1f} to {placed['max']:.1f}"
        table.append([name, str(len(runs)), f"{episodes:.0f}", f"{seconds:.0f}", *said, worst_best])
    columns = ["who decides", "runs", "episodes", "CPU s", *_SHORT, "placed, worst to best run"]
    return Grid(f"{_about(results, study)}; ± 95 % confidence over runs.", columns, table)


_SHORT = {
    "placed": ("deployed", 1), "judged": ("judged", 1), "wrong": ("wrong", 1),
    "return in thought": ("return_thought", 0), "after": ("return_after", 0),
}  # fmt: skip


def _whole(results: Mapping[str, Any], study: str, rows: Mapping[str, Any]) -> Grid:
    said = [
        [name, *(f"{_over(each['runs'], key)['mean']:.{digits}f}" for key, digits in FIGURES.values())]
        for name, each in rows.items()
    ]
    return Grid(f"{_about(results, study)}; shares used, deviations over clusters.", ["who decides", *FIGURES], said)


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    studies = [study for study in results["question"]["studies"] if _ran(results, study)]
    if not studies:
        return {}
    across = min(3, len(studies))
    figure, axes = plots.panels(-(-len(studies) // across), across)
    flat = [axis for row in axes for axis in row]
    for axis in flat[len(studies) :]:
        axis.set_visible(False)
    for axis, study in zip(flat, studies, strict=False):
        rows = _ran(results, study)
        for (name, variant), style in zip(rows.items(), plots.styles(list(rows)).values(), strict=True):
            points = min(len(run["curve"]) for run in variant["runs"])
            mean = np.mean([run["curve"][:points] for run in variant["runs"]], axis=0)
            episodes = fmean(run["episodes"] for run in variant["runs"])
            at = (np.arange(points) + 0.5) * episodes / points
            axis.plot(at, mean, label=name, color=style.colour, linestyle=style.line, linewidth=1.3)
        axis.set(title=study, xlabel="episodes", ylabel="tasks placed")
        axis.legend(fontsize=5)
    text = "tasks placed of an episode while learning, mean over the runs"
    return {"learning.png": plots.caption(figure, text)}


REPORT = Report(tables, pictures)
