"""From single runs to what is told of them: each scheduler's figures, and how much sooner than the plain network. Pure.

Times are of trainings that reached their accuracy. One that did not in its time counts with the time it had, which
flatters it: where that is so, a table says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import Any

from ces_core.bench.spread import spread

Run = Mapping[str, Any]
Runs = Iterable[Run]
ALL = "all"


def summary(results: Mapping[str, Any]) -> dict[str, Any]:
    """Architecture (or ``all``) -> scheduler -> its figures."""
    question, runs = results["question"], list(results["runs"].values())
    limit = question["limit_s"]
    return {
        architecture: {
            scheduler: figures([run for run in of(runs, architecture) if run["scheduler"] == scheduler], limit)
            for scheduler in question["schedulers"]
        }
        for architecture in (*question["architectures"], ALL)
    }


def of(runs: Runs, architecture: str) -> list[Run]:
    return [run for run in runs if architecture in (ALL, run["architecture"])]


def figures(runs: Runs, limit_s: float) -> dict[str, Any]:
    """Of one scheduler's runs. ``measured`` and ``busiest``: what flows over links carried on average, and in the
    busiest report, as shares of what they were given."""
    runs = list(runs)
    placed = [run for run in runs if run["placed"]]
    flows = [flow for run in placed for flow in run["flows"] if flow["given"]]
    delivered = [run["background_delivered"] for run in placed if run["background_delivered"] is not None]
    found: dict[str, Any] = {"runs": len(runs), "placed": len(placed), "reached": sum(map(reached, placed))}
    for what in ("composite", "load_imbalance", "bandwidth_satisfaction", "local"):
        found[what] = spread(run["planned"][what] for run in placed)
    found["rate"] = spread(flow["mean"] for flow in flows)
    found["measured"] = spread(flow["mean"] / flow["given"] for flow in flows)
    found["busiest"] = spread(flow["most"] / flow["given"] for flow in flows)
    found["background"] = spread(delivered)
    found["seconds"] = spread(seconds(run, limit_s) for run in placed)
    return found


def reached(run: Run) -> bool:
    return bool(run["placed"] and run["training"] is not None)


def seconds(run: Run, limit_s: float) -> float:
    """Of a run that had a place."""
    return float(run["training"]["seconds"]) if reached(run) else limit_s


@dataclass(frozen=True)
class Sooner:
    """How many times as long as a scheduler's the other's trainings took, seed by seed: the geometric mean, the least
    and the most. ``cut_mine``, ``cut_other``: pairs in which that side was ended before its end."""

    pairs: int
    mean: float
    least: float
    most: float
    cut_mine: int
    cut_other: int


def sooner(runs: Runs, scheduler: str, other: str, limit_s: float) -> Sooner | None:
    """Over the runs that both have; None where that is none."""
    runs = list(runs)
    mine, theirs = by_instance(runs, scheduler), by_instance(runs, other)
    both = [(run, theirs[key]) for key, run in mine.items() if key in theirs]
    placed = [(run, against) for run, against in both if run["placed"] and against["placed"]]
    if not placed:
        return None
    ratios = [seconds(against, limit_s) / seconds(run, limit_s) for run, against in placed]
    return Sooner(
        len(placed),
        exp(fmean(map(log, ratios))),
        min(ratios),
        max(ratios),
        sum(not reached(run) for run, _ in placed),
        sum(not reached(against) for _, against in placed),
    )


def by_instance(runs: Runs, scheduler: str) -> dict[tuple[int, str], Run]:
    return {(run["seed"], run["architecture"]): run for run in runs if run["scheduler"] == scheduler}


def by_seed(runs: Runs, scheduler: str, other: str, limit_s: float) -> dict[int, float]:
    """Seed -> the geometric mean over the architectures of how many times as long the other took."""
    runs = list(runs)
    parts = {seed: [run for run in runs if run["seed"] == seed] for seed in sorted({run["seed"] for run in runs})}
    found = {seed: sooner(part, scheduler, other, limit_s) for seed, part in parts.items()}
    return {seed: each.mean for seed, each in found.items() if each is not None}


def times(runs: Runs) -> tuple[list[float], int]:
    """Seconds of the trainings that reached their accuracy, the shortest first; and how many runs there were."""
    runs = list(runs)
    return sorted(float(run["training"]["seconds"]) for run in runs if reached(run)), len(runs)
