"""What the mixes tell, as tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import Cell, figure, gain, of, percent
from ces_experiments.malleable.mix.jobs import MALLEABLE
from ces_experiments.malleable.mix.outcome import AIM_S, PARTS, paired, parts, summary
from ces_experiments.malleable.mix.run import Question, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUTCOMES: dict[str, Cell] = {
    "on time": lambda each: f"{each['on_time']} of {each['jobs']}",
    "%": of("share", percent),
    **{fate: of(fate, str) for fate in ("late", "refused", "failed", "cancelled")},
    "completion, s: mean": of("took_s", figure, "mean", 1),
    "median": of("took_s", figure, "p50", 1),
    "resizes": of("resizes", str),
    "given up": of("given_up", str),
    "steps lost": lambda each: f"{each['lost']} in {each['starts']} starts" if each["starts"] else "-",
}
SECONDS: dict[str, Cell] = {"n": of("n", str), **{key: of(key, "{:.2f}".format) for key in ("p50", "p95", "most")}}


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """Outcomes, differences, times of resizes, and each run."""
    runs, question = results["runs"], results["question"]
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(run["seed"] for run in runs))
    where = f"{question['nodes']} hosts of {results['setting']['cores']} cores"
    title = f"{question['jobs']} jobs a run on {where}; seeds {seeds}. Completion times are of jobs that succeeded."
    found = [
        Grid.of(title, "jobs", OUTCOMES, [(_name(way), each) for way, each in summary(runs).items()]),
        _differences(runs),
    ]
    if told := parts(runs):
        title = f"Seconds of a resize, of all that came to their end. Aim: {AIM_S:g} s for the p95 of the first line."
        found.append(Grid.of(title, "part", SECONDS, [(PARTS[part], each) for part, each in told.items()]))
    audit = results["audit"]
    title = (
        f"Each run, in order. The audit of all {audit['events']} events and {audit['plans']} plans: "
        f"{len(audit['findings'])} findings."
    )
    rows = [
        [
            str(run["seed"]), _name(run["way"]), str(sum(job["on_time"] for job in run["jobs"])),
            str(len(run["resizes"])), str(run["took_s"]), str(run["load_average"]), f"{run['stolen']:.1%}",
        ]
        for run in runs
    ]  # fmt: skip
    columns = ["seed", "jobs", "on time", "resizes", "took, s", "load average before", "cores had by others"]
    return [*found, Grid(title, columns, rows)]


def _name(way: str) -> str:
    """A way as tables call it."""
    return way if way == MALLEABLE else f"rigid, sized for {float(way):.0%} of their time"


def _differences(runs: Any) -> Grid:
    rows = [
        [
            _name(way), str(each["share"]["n"]), gain(each["share"], 100, 1), gain(each["took_s"], 1, 1),
            ", ".join(f"{one} - {other}" for one, other in each["seeds"].values()) or "-",
        ]
        for way, each in paired(runs).items()
    ]  # fmt: skip
    columns = ["malleable against", "seeds", "on time, points", "completion, s", "on time, each seed"]
    return Grid("Malleable less rigid, seed by seed: mean ± 95 % (Student's t).", columns, rows)


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    runs = results["runs"]
    figure, axes = plots.panels(1, 2, width=4.0, height=2.9)
    ways = list(dict.fromkeys(run["way"] for run in sorted(runs, key=lambda run: run["way"] != MALLEABLE)))
    for place, (way, style) in enumerate(plots.styles(ways).items()):
        own = [run for run in runs if run["way"] == way]
        counts = [sum(job["on_time"] for job in run["jobs"]) for run in own]
        at = [run["seed"] + plots.beside(place, len(ways)) for run in own]
        axes[0][0].bar(at, counts, width=0.5 / len(ways), color=style.colour, label=_name(way))
    axes[0][0].set(xlabel="seed", ylabel="jobs on time", ylim=(0, results["question"]["jobs"]))
    axes[0][0].set_xticks(sorted({run["seed"] for run in runs}))
    for part, colour in zip(("control", "still"), plots.COLOURS, strict=False):
        values = sorted(each[part] for run in runs for each in run["resizes"] if each[part] is not None)
        if values:
            shares = np.arange(1, len(values) + 1) / len(values)
            axes[0][1].step(values, shares, where="post", color=colour, label=PARTS[part].strip("*"))
            axes[0][1].legend(fontsize=7, loc="lower right")
    axes[0][1].axvline(AIM_S, color="#444444", linewidth=0.8, linestyle="--")
    axes[0][1].set(xlabel="seconds", ylabel="share of resizes", xlim=(0, None), ylim=(0, 1))
    axes[0][0].legend(fontsize=7, loc="lower right")
    return {"mix.png": plots.caption(figure, f"dashed: the aim of {AIM_S:g} s for the 95th percentile of the share")}


REPORT = Report(tables, pictures)
MIX = Experiment(Question.of, measure, REPORT)
