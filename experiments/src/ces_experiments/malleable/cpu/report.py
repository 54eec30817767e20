"""What jobs whose CPU CES chooses took, against fixed requests, as tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import Cell, figure, gain, of
from ces_experiments.common.ways import by_way, succeeded
from ces_experiments.malleable.cpu.jobs import RULES
from ces_experiments.malleable.cpu.outcome import GOT_LEAST, got, paired, starved, summary
from ces_experiments.malleable.cpu.run import Question, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUTCOMES: dict[str, Cell] = {
    "succeeded": lambda each: f"{each['succeeded']} of {each['jobs']}",
    "completion, s: mean": of("took_s", figure, "mean", 1),
    "median": of("took_s", figure, "p50", 1),
    "p95": of("p95", "{:.1f}".format),
    "waiting, s: mean": of("waited_s", figure, "mean", 1),
    "end known after, s": of("known_s", figure, "mean", 1),
    "a worker's CPU, mean": lambda each: "-" if each["cpu"] is None else f"{each['cpu']:.0f}m",
    "changes a job": of("changes", figure, "mean", 1),
    "of its CPU got": lambda each: _share(each["got"]),
    "began again": of("again", str),
    "services, % of a core": lambda each: f"{each['services'] * 100:.1f}",
}
MARK = " \\*"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """Outcomes, differences, and each run."""
    runs, question, setting = results["runs"], results["question"], results["setting"]
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(run["seed"] for run in runs))
    where = f"{question['nodes']} hosts of {setting['host']}m"
    title = f"{question['jobs']} jobs a run on {where}; seeds {seeds}. Times are of jobs that succeeded."
    audit = results["audit"]
    each = (
        f"Each run, in order. The audit of all {audit['events']} events and {audit['plans']} plans: "
        f"{len(audit['findings'])} findings."
    )
    if any(starved(run) for run in runs):
        each += f" \\*: workers got less than {GOT_LEAST:.0%} of the CPU that they held: the machine was too busy."
    rows = [
        [
            f"{run['seed']}{MARK if starved(run) else ''}", _name(run["way"]),
            f"{np.mean([job['took_s'] for job in done]):.1f}" if (done := succeeded(run)) else "-",
            _share(got([run])), str(run["took_s"]), str(run["load_average"]), f"{run['stolen']:.1%}",
        ]
        for run in runs
    ]  # fmt: skip
    columns = ["seed", "CPU", "completion, s", "of its CPU got", "took, s", "load average before"]
    return [
        Grid.of(title, "CPU", OUTCOMES, [(_name(way), found) for way, found in summary(runs).items()]),
        _differences(runs),
        Grid(each, [*columns, "cores had by others"], rows),
    ]


def _name(way: str) -> str:
    """A way as tables call it."""
    return way if way in RULES else f"{way}, fixed"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _differences(runs: Any) -> Grid:
    rows = [
        [
            rule, _name(way), str(each["took_s"]["n"]), gain(each["took_s"], 1, 1), gain(each["part"], 100, 1),
            gain(each["p95"], 1, 1),
            ", ".join(f"{one:.1f} - {other:.1f}" for one, other in each["seeds"].values()) or "-",
        ]
        for (rule, way), each in paired(runs).items()
    ]  # fmt: skip
    columns = ["CPU", "against", "seeds", "mean completion, s", "the same, %", "p95, s", "means, each seed"]
    return Grid(
        "The one less the other, seed by seed: mean ± 95 % (Student's t). Below 0 the one is faster.", columns, rows
    )


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    runs = results["runs"]
    figure, axes = plots.panels(1, 2, width=4.0, height=2.9)
    ways = by_way(sorted(runs, key=lambda run: RULES.index(run["way"]) if run["way"] in RULES else len(RULES)))
    for place, (way, style) in enumerate(plots.styles(list(ways)).items()):
        told = [(run["seed"], [job["took_s"] for job in succeeded(run)]) for run in ways[way]]
        at = [seed + plots.beside(place, len(ways)) for seed, _ in told]
        means = [float(np.mean(took)) if took else 0.0 for _, took in told]
        axes[0][0].bar(at, means, width=0.5 / len(ways), color=style.colour)
        every = sorted(each for _, took in told for each in took)
        shares = np.arange(1, len(every) + 1) / max(len(every), 1)
        axes[0][1].step(every, shares, where="post", color=style.colour, label=_name(way))
    axes[0][0].set(xlabel="seed", ylabel="mean completion time, s", ylim=(0, None))
    axes[0][0].set_xticks(sorted({run["seed"] for run in runs}))
    axes[0][1].set(xlabel="completion time, s", ylabel="share of jobs", xlim=(0, None), ylim=(0, 1))
    axes[0][1].legend(fontsize=7, loc="lower right")
    return {"cpu.png": figure}


REPORT = Report(tables, pictures)
CPU = Experiment(Question.of, measure, REPORT)
