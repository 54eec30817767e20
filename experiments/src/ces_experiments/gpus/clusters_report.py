"""Tables and a picture of the experiment with clusters of GPU hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import confidence
from ces_experiments.gpus.clusters import Question, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {
    "placed": ("deployed", 1), "judged": ("judged", 1), "wrong": ("wrong", 1), "CPU": ("cpu_used", 3),
    "sd": ("cpu_sd", 3), "memory": ("memory_used", 3), "sd ": ("memory_sd", 3),
    "GPU memory": ("card_memory_used", 3), "sd  ": ("card_memory_sd", 3), "GPU": ("milli_used", 3),
    "sd   ": ("milli_sd", 3), "eq 27": ("idle", 3), "eq 28": ("variance", 4), "GPU variance": ("gpu_variance", 4),
    "fragmented": ("fragmented", 3), "return after": ("return_after", 0), "in thought": ("return_thought", 0),
}  # fmt: skip
"""Heading -> figure of an episode, and with how many digits it is told."""


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """Tasks placed in all scenarios, and for each scenario everything else."""
    scenarios, seeds = results["scenarios"], results["question"]["seeds"]
    return [_placed(scenarios, seeds), *(_grid(name, found, seeds) for name, found in scenarios.items())]


def _who(scenarios: Mapping[str, Any]) -> list[str]:
    """By the sum of what they placed, the most first."""
    names = next(iter(scenarios.values()))["contenders"]
    return sorted(names, key=lambda who: -sum(_mean(each, who, "deployed") for each in scenarios.values()))


def _mean(found: Mapping[str, Any], who: str, what: str) -> float:
    return float(found["contenders"][who][what]["mean"])


def _placed(scenarios: Mapping[str, Any], seeds: int) -> Grid:
    rows = [["upper bound", *(f"{found['bound']['mean']:.1f}" for found in scenarios.values())]]
    for who in _who(scenarios):
        each = [found["contenders"][who]["deployed"] for found in scenarios.values()]
        rows.append([who, *(f"{value['mean']:.1f} ± {confidence(value)[1]:.1f}" for value in each)])
    return Grid(f"Tasks placed, mean of {seeds} draws ± 95 % confidence.", ["who decides", *scenarios], rows)


def _grid(name: str, found: Mapping[str, Any], seeds: int) -> Grid:
    rows = []
    for who in _who({name: found}):
        figures = found["contenders"][who]
        ms = f"{figures['decision_ms']['mean']:.3f}" if "decision_ms" in figures else "-"
        rows.append([who, *(f"{figures[key]['mean']:.{digits}f}" for key, digits in FIGURES.values()), ms])
    title = f"{name}: means of {seeds} draws; shares used, and deviations over clusters."
    return Grid(title, ["who decides", *FIGURES, "decision, ms"], rows)


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    scenarios = results["scenarios"]
    names = [who for who in _who(scenarios) if not who.endswith("-retry")][::-1]
    figure, axes = plots.panels(1, len(scenarios), width=2.3, height=0.8 + 0.2 * len(names), sharey=True)
    for axis, (name, found) in zip(axes[0], scenarios.items(), strict=True):
        for place, who in enumerate(names):
            plots.curve(axis, [(place, found["contenders"][who]["deployed"])], 1.0, lying=True, color=plots.COLOURS[0])
        axis.axvline(found["bound"]["mean"], color=plots.COLOURS[1], linewidth=1.0, linestyle="--")
        shown = [_mean(found, who, "deployed") for who in names]
        top = found["bound"]["mean"]
        axis.set(title=name, xlim=(max(min(shown), 0.8 * top) - 2, top + 2))
    axes[0][0].set_yticks(range(len(names)), names, fontsize=7)
    note = "tasks placed; dashed: the upper bound; rules left of the panel place fewer than 80 % of it"
    return {"placed.png": plots.caption(figure, note)}


REPORT = Report(tables, pictures)
CLUSTERS = Experiment(Question.of, measure, REPORT)
