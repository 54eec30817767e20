"""Plots of the experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ces_core.bench.drawing import confidence, legend_outside, panels, save, styles
from ces_testbed.bench.testbed.summary import of, summary, times

WHAT = {
    "composite": "composite",
    "load_imbalance": "load imbalance L",
    "bandwidth_satisfaction": "bandwidth satisfaction D",
}

BEYOND = 1.1
"""Time goes on for so many times as long as the last job took."""


def testbed_plots(results: Mapping[str, Any], out: Path) -> None:
    """``planned.png``: composite, L and D by scheduler, as the thesis's figure 4-4; ``time-to-accuracy.png``: share of
    the jobs that have reached their accuracy, over time."""
    _planned(results, out / "planned.png")
    _times(results, out / "time-to-accuracy.png")


def _planned(results: Mapping[str, Any], path: Path) -> None:
    found, question = summary(results), results["question"]
    architectures, schedulers = question["architectures"], question["schedulers"]
    known = styles(schedulers)
    figure, [axes] = panels(1, len(WHAT), width=3.8, height=3.0)
    width = 0.8 / len(schedulers)
    for axis, (what, label) in zip(axes, WHAT.items(), strict=True):
        for i, scheduler in enumerate(schedulers):
            figures = [found[architecture][scheduler][what] for architecture in architectures]
            there = [(place, each) for place, each in enumerate(figures) if each["n"]]
            ranges = [confidence(each) for _, each in there]
            axis.bar(
                [place + (i + 0.5) * width - 0.4 for place, _ in there],
                [each["mean"] for _, each in there],
                width,
                yerr=[[below for below, _ in ranges], [above for _, above in ranges]],
                error_kw={"elinewidth": 0.7, "alpha": 0.6},
                color=known[scheduler].colour,
                label=scheduler,
            )
        axis.set_xticks(range(len(architectures)), architectures)
        axis.set_title(label, fontsize=10)
        axis.set_ylim(bottom=0)
    legend_outside(figure, axes[0])
    save(figure, path)


def _times(results: Mapping[str, Any], path: Path) -> None:
    question, runs = results["question"], list(results["runs"].values())
    known = styles(question["schedulers"])
    figure, [axes] = panels(1, len(question["architectures"]), width=3.6, height=3.0, sharey=True)
    end = min(question["limit_s"], BEYOND * max(times(runs)[0], default=question["limit_s"]))
    for axis, architecture in zip(axes, question["architectures"], strict=True):
        for scheduler in question["schedulers"]:
            took, count = times(run for run in of(runs, architecture) if run["scheduler"] == scheduler)
            shares = [(place + 1) / count for place in range(len(took))]
            last = [(end, shares[-1])] if shares else []
            points = [(0.0, 0.0), *zip(took, shares, strict=True), *last]
            look = known[scheduler]
            axis.step(*zip(*points, strict=True), where="post", color=look.colour, linestyle=look.line, label=scheduler)
        axis.set(xlabel=f"seconds until accuracy {question['accuracy']:g}", xlim=(0, end))
        axis.set_title(architecture, fontsize=10)
    axes[0].set(ylabel="share of jobs", ylim=(0, 1.02))
    legend_outside(figure, axes[0])
    save(figure, path)
