"""The testbed experiment, with its tables and pictures: plans, rates, time to accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.plots import COMPOSITE, IMBALANCE, SATISFACTION
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import Cell, confidence, figure, of, percent, plus_minus
from ces_experiments.testbed.question import PLAIN, Question
from ces_experiments.testbed.run import measure
from ces_experiments.testbed.summary import ALL, Sooner, by_seed, left_out, sooner, summary, times, told_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AIM = 1.5
BEYOND = 1.1
"""Length of the time axis, as a multiple of the longest time to accuracy; at most the time limit."""
PLANNED: dict[str, Cell] = {
    "placed": lambda each: f"{each['placed']} of {each['runs']}",
    "composite": of("composite", plus_minus),
    "L": of("load_imbalance", plus_minus),
    "D": of("bandwidth_satisfaction", plus_minus),
    "flows within a node, %": of("local", percent),
}
MEASURED = {
    "flows over links": of("rate", lambda rate: str(rate["n"])),
    "mean, Mbit/s": of("rate", lambda rate: f"{rate['mean'] / 1e6:.2f}" if rate["n"] else "-"),
    "of what was given, %": of("measured", percent),
    "in the busiest 2 s, %": of("busiest", percent),
    "at most, times": of("busiest", figure, "max", 2),
    "background's own, %": of("background", percent),
}
TIMES: dict[str, Cell] = {
    "reached": lambda each: f"{each['reached']} of {each['placed']}",
    "failed": lambda each: str(each["failed"]),
    "mean": of("seconds", figure, "mean", 1),
    "std": of("seconds", figure, "std", 1),
    "least": of("seconds", figure, "min", 1),
    "median": of("seconds", figure, "p50", 1),
    "most": of("seconds", figure, "max", 1),
}
SHOWN = (COMPOSITE, IMBALANCE, SATISFACTION)


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """How much sooner than on the plain network, if that was asked for; then plans, what was measured, and times."""
    question, found = results["question"], summary(results)
    jobs = [
        (f"{architecture}, {scheduler}", each)
        for architecture, schedulers in found.items()
        for scheduler, each in schedulers.items()
    ]
    planned = f"What was planned: mean ± standard deviation over the jobs placed; {_seeds(results)}."
    measured = (
        "What flows over links carried, by the agents' counters at their sources (trainings also compute and wait); "
        "and how much of what background streams send arrived."
    )
    times = (
        f"Seconds until accuracy {question['accuracy']:g} was reached, of the jobs placed. Those that were ended after "
        f"{question['limit_s']:g} s, or used up their rounds, count with the seconds until their last round; those "
        "that failed do not count."
    )
    grids = [
        Grid.of(planned, "jobs", PLANNED, jobs),
        Grid.of(measured, "scheduler", MEASURED, found[ALL].items()),
        Grid.of(times, "jobs", TIMES, jobs),
    ]
    return [_sooner(results), *grids] if PLAIN in question["schedulers"] else grids


def _sooner(results: Mapping[str, Any]) -> Grid:
    question, runs = results["question"], list(results["runs"].values())
    limit, architectures, rows = question["limit_s"], question["architectures"], []
    for scheduler in question["schedulers"]:
        if scheduler == PLAIN:
            continue
        cells = [
            _ratio(sooner(told_of(runs, architecture), scheduler, PLAIN, limit))
            for architecture in (*architectures, ALL)
        ]
        seeds = by_seed(runs, scheduler, PLAIN, architectures, limit).values()
        missing = left_out(runs, scheduler, PLAIN)
        others = [str(missing.unplaced), str(missing.other_unplaced), str(missing.failed)]
        rows.append(
            [scheduler, *cells, ", ".join(f"{_mark(each)}{each.mean:.2f}" if each else "-" for each in seeds), *others]
        )
    title = (
        f"How many times sooner accuracy {question['accuracy']:g} is reached than with {PLAIN} on a network without "
        f"bandwidth control (aim: {AIM:g}), of pairs of runs in which both had a place and neither failed: geometric "
        "mean over seeds of the ratio of times, in brackets how many pairs; `>` or `<` where in some of them the "
        "other's or the scheduler's own did not reach it, so that the true mean is beyond, `~` where both. Each seed: "
        f"the mean over architectures, of {_seeds(results)} in this order; `-` where one of them lacks its pair. The "
        "last columns: pairs left out, since the scheduler had no place for the job, only the other had none, or one "
        "of the two trainings failed."
    )
    columns = ("scheduler", *architectures, ALL, "each seed", "no place", "other no place", "failed")
    return Grid(title, columns, rows)


def _ratio(found: Sooner | None) -> str:
    return f"{_mark(found)}{found.mean:.2f} ({found.pairs})" if found is not None else "-"


def _mark(found: Sooner) -> str:
    if found.cut_mine and found.cut_other:
        return "~"
    return ">" if found.cut_other else "<" if found.cut_mine else ""


def _seeds(results: Mapping[str, Any]) -> str:
    seeds = results["question"]["seeds"]
    return f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]}"


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Composite, L and D by scheduler, as the thesis's figure 4-4; share of the jobs that have reached their accuracy,
    over time."""
    return {"planned.png": _planned(results), "time-to-accuracy.png": _over_time(results)}


def _planned(results: Mapping[str, Any]) -> Figure:
    found, question = summary(results), results["question"]
    architectures, known = question["architectures"], plots.styles(question["schedulers"])
    picture, [axes] = plots.panels(1, len(SHOWN), width=3.8, height=3.0)
    width = 0.8 / len(known)
    for axis, column in zip(axes, SHOWN, strict=True):
        for i, (scheduler, style) in enumerate(known.items()):
            figures = [found[architecture][scheduler][column.what] for architecture in architectures]
            there = [(place, each) for place, each in enumerate(figures) if each["n"]]
            below, above = zip(*(confidence(each) for _, each in there), strict=True) if there else ((), ())
            axis.bar(
                [place + (i + 0.5) * width - 0.4 for place, _ in there],
                [each["mean"] for _, each in there],
                width,
                yerr=[below, above],
                error_kw={"elinewidth": 0.7, "alpha": 0.6},
                color=style.colour,
                label=scheduler,
            )
        axis.set_xticks(range(len(architectures)), architectures)
        axis.set_title(column.label, fontsize=10)
        axis.set_ylim(bottom=0)
    plots.legend_outside(picture, axes[0])
    return picture


def _over_time(results: Mapping[str, Any]) -> Figure:
    question, runs = results["question"], list(results["runs"].values())
    picture, [axes] = plots.panels(1, len(question["architectures"]), width=3.6, height=3.0, sharey=True)
    end = min(question["limit_s"], BEYOND * max(times(runs)[0], default=question["limit_s"]))
    for axis, architecture in zip(axes, question["architectures"], strict=True):
        for scheduler, look in plots.styles(question["schedulers"]).items():
            took, count = times(run for run in told_of(runs, architecture) if run["scheduler"] == scheduler)
            shares = [(place + 1) / count for place in range(len(took))]
            last = [(end, shares[-1])] if shares else []
            points = [(0.0, 0.0), *zip(took, shares, strict=True), *last]
            axis.step(*zip(*points, strict=True), where="post", color=look.colour, linestyle=look.line, label=scheduler)
        axis.set(xlabel=f"seconds until accuracy {question['accuracy']:g}", xlim=(0, end))
        axis.set_title(architecture, fontsize=10)
    axes[0].set(ylabel="share of jobs", ylim=(0, 1.02))
    plots.legend_outside(picture, axes[0])
    return picture


REPORT = Report(tables, pictures)
TESTBED = Experiment(Question.of, measure, REPORT)
