"""The real regions' figures as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.regions.live import Question, measure
from ces_experiments.regions.live_load import CORES

STEPS = {
    "at_home_ms": "at home: submitted until workers run",
    "elsewhere_ms": "elsewhere: submitted until workers run",
    "decided_ms": "elsewhere: submitted until decided",
    "begun_ms": "elsewhere: decided until workers run",
}


def tables(results: Mapping[str, Any]) -> list[Grid]:
    load = results["load"]
    asked = (
        f"{load['jobs']} jobs of {load['tasks']} tasks and {load['run_s']:g} s, {load['rate']:g} a second, from "
        f"{load['regions']} homes, half of them from a quarter; {load['nodes']} nodes of {CORES} cores each; "
        f"{load['offered']:.0%} of all cores asked for; seed {load['seed']}"
    )
    return [_times(results, asked), _traffic(results), _where(results), _spent(results)]


def _times(results: Mapping[str, Any], asked: str) -> Grid:
    states = ", ".join(f"{count} {state}" for state, count in sorted(results["states"].items()))
    rows = [
        [words, *(f"{found[key]:,.0f}" for key in ("p50", "p90", "p99", "worst")), str(found["count"])]
        for step, words in STEPS.items()
        if (found := results[step])
    ]
    title = f"{asked}. {states}; {results['elsewhere']} ran elsewhere. Milliseconds:"
    return Grid(title, ["", "p50", "p90", "p99", "worst", "jobs"], rows)


def _traffic(results: Mapping[str, Any]) -> Grid:
    hub = results["hub"]
    rows = [
        ["idle, per second", *_amounts(hub["idle_per_s"])],
        ["under load, per second", *_amounts(hub["loaded_per_s"])],
        ["beyond idle, for each job elsewhere", *_amounts(hub["per_job_elsewhere"])],
    ]
    return Grid("What all regions together sent to the hub.", ["", "messages", "bytes"], rows)


def _amounts(found: Mapping[str, float]) -> list[str]:
    return [f"{found['messages']:,.1f}", f"{found['bytes']:,.0f}"]


def _where(results: Mapping[str, Any]) -> Grid:
    regions = list(results["matrix"])
    names = {region: f"r{number}" for number, region in enumerate(regions, start=1)}
    rows = [
        [names[home], *(str(where.get(region, 0)) for region in regions)] for home, where in results["matrix"].items()
    ]
    offers = ", ".join(f"{outcome} {count}" for outcome, count in sorted(results["offers"].items()) if count)
    return Grid(
        f"Where the jobs of each home ran. Offers by outcome: {offers or 'none'}.", ["home", *names.values()], rows
    )


def _spent(results: Mapping[str, Any]) -> Grid:
    spent = results["cpu_ms_per_job"]
    title = f"CPU of all regions' services for a job, idling included, over {results['seconds']:.0f} s, ms."
    return Grid(title, list(spent), [[f"{used:.1f}" for used in spent.values()]])


REPORT = Report(tables)
LIVE = Experiment(Question.of, measure, REPORT)
