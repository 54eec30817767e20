"""The experiment's results as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, percent, plus_minus
from ces_testbed.bench.testbed.question import PLAIN
from ces_testbed.bench.testbed.summary import ALL, Sooner, by_seed, left_out, of, sooner, summary

AIM = 1.5


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """How much sooner, if the plain network was asked for; then plans, what was measured, and times."""
    found = summary(results)
    tables = [_planned(results, found), _measured(results, found), _times(results, found)]
    return [_sooner(results), *tables] if PLAIN in results["question"]["schedulers"] else tables


def _sooner(results: Mapping[str, Any]) -> Grid:
    question, runs = results["question"], list(results["runs"].values())
    limit, architectures, rows = question["limit_s"], question["architectures"], []
    for scheduler in question["schedulers"]:
        if scheduler == PLAIN:
            continue
        cells = [
            _ratio(sooner(of(runs, architecture), scheduler, PLAIN, limit)) for architecture in (*architectures, ALL)
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
    question = results["question"]
    rows = [
        [
            f"{architecture}, {scheduler}",
            f"{each['reached']} of {each['placed']}",
            str(each["failed"]),
            *(figure(each["seconds"], key, 1) for key in ("mean", "std", "min", "p50", "max")),
        ]
        for architecture, schedulers in found.items()
        for scheduler, each in schedulers.items()
    ]
    title = (
        f"Seconds until accuracy {question['accuracy']:g} was reached, of the jobs placed. Those that were ended after "
        f"{question['limit_s']:g} s, or used up their rounds, count with the seconds until their last round; those "
        "that failed do not count."
    )
    return Grid(title, ("jobs", "reached", "failed", "mean", "std", "least", "median", "most"), rows)


def _seeds(results: Mapping[str, Any]) -> str:
    seeds = results["question"]["seeds"]
    return f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]}"
