"""The experiment's results as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, percent, plus_minus
from ces_testbed.bench.testbed.question import PLAIN
from ces_testbed.bench.testbed.summary import ALL, Sooner, by_seed, of, sooner, summary

AIM = 1.5


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """How much sooner, if the plain network was asked for; then plans, what was measured, and times."""
    found = summary(results)
    tables = [_planned(results, found), _measured(results, found), _times(results, found)]
    return [_sooner(results), *tables] if PLAIN in results["question"]["schedulers"] else tables


def _sooner(results: Mapping[str, Any]) -> Grid:
    question, runs = results["question"], list(results["runs"].values())
    limit, rows = question["limit_s"], []
    for scheduler in question["schedulers"]:
        if scheduler == PLAIN:
            continue
        cells = [
            _ratio(sooner(of(runs, architecture), scheduler, PLAIN, limit))
            for architecture in (*question["architectures"], ALL)
        ]
        seeds = by_seed(runs, scheduler, PLAIN, limit)
        worst = f"{min(seeds.values()):.2f} to {max(seeds.values()):.2f}" if seeds else "-"
        rows.append([scheduler, *cells, worst])
    title = (
        f"How many times sooner accuracy {question['accuracy']:g} is reached than with {PLAIN} on a network without "
        f"bandwidth control (aim: {AIM:g}): geometric mean over seeds of the ratio of times, in brackets how many "
        "pairs of runs; `>` or `<` where in some of them one side was ended before its end, so that the true mean is "
        "beyond. The last column: the mean over architectures, of the worst to the best seed."
    )
    return Grid(title, ("scheduler", *question["architectures"], ALL, "single seeds"), rows)


def _ratio(found: Sooner | None) -> str:
    if found is None:
        return "-"
    mark = "~" if found.cut_mine and found.cut_other else ">" if found.cut_other else "<" if found.cut_mine else ""
    return f"{mark}{found.mean:.2f} ({found.pairs})"


def _planned(results: Mapping[str, Any], found: Mapping[str, Any]) -> Grid:
    rows = [
        [
            f"{architecture}, {scheduler}",
            f"{each['placed']} of {each['runs']}",
            plus_minus(each["composite"]),
            plus_minus(each["load_imbalance"]),
            plus_minus(each["bandwidth_satisfaction"]),
            percent(each["local"]),
        ]
        for architecture, schedulers in found.items()
        for scheduler, each in schedulers.items()
    ]
    title = f"What was planned: mean ± standard deviation over the jobs placed; {_seeds(results)}."
    return Grid(title, ("jobs", "placed", "composite", "L", "D", "flows within a node, %"), rows)


def _measured(results: Mapping[str, Any], found: Mapping[str, Any]) -> Grid:
    rows = [
        [
            scheduler,
            str(each["rate"]["n"]),
            f"{each['rate']['mean'] / 1e6:.2f}" if each["rate"]["n"] else "-",
            percent(each["measured"]),
            percent(each["busiest"]),
            figure(each["busiest"], "max", 2),
            percent(each["background"]),
        ]
        for scheduler, each in found[ALL].items()
    ]
    columns = (
        "scheduler",
        "flows over links",
        "mean, Mbit/s",
        "of what was given, %",
        "in the busiest 2 s, %",
        "at most, times",
        "background's own, %",
    )
    title = (
        "What flows over links carried, by the agents' counters at their sources (trainings also compute and wait); "
        "and how much of what background streams send arrived."
    )
    return Grid(title, columns, rows)


def _times(results: Mapping[str, Any], found: Mapping[str, Any]) -> Grid:
    limit = results["question"]["limit_s"]
    rows = [
        [
            f"{architecture}, {scheduler}",
            f"{each['reached']} of {each['placed']}",
            *(figure(each["seconds"], key, 1) for key in ("mean", "std", "min", "p50", "max")),
        ]
        for architecture, schedulers in found.items()
        for scheduler, each in schedulers.items()
    ]
    title = f"Seconds until the accuracy was reached, of the jobs placed; those that were ended count with {limit:g} s."
    return Grid(title, ("jobs", "reached", "mean", "std", "least", "median", "most"), rows)


def _seeds(results: Mapping[str, Any]) -> str:
    seeds = results["question"]["seeds"]
    return f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]}"
