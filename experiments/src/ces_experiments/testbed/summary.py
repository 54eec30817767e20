"""From single runs to what is told of them: each scheduler's figures, and how much sooner than the plain network. Pure.

A training has reached its accuracy where one of its workers told of it and all came to their end. One that was cut, or
had used up its rounds, counts with the time it had, which flatters it: where that is so, a table says it. A job that
had no place, or failed, has no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from ces_experiments.common.spread import spread

Run = Mapping[str, Any]
Runs = Iterable[Run]
ALL = "all"
TOLD_DIGITS = 4  # of an accuracy, in what workers tell


def summary(results: Mapping[str, Any]) -> dict[str, Any]:
    """Architecture (or ``all``) -> scheduler -> its figures."""
    question, runs = results["question"], list(results["runs"].values())
    limit = question["limit_s"]
    return {
        architecture: {
            scheduler: figures([run for run in told_of(runs, architecture) if run["scheduler"] == scheduler], limit)
            for scheduler in question["schedulers"]
        }
        for architecture in (*question["architectures"], ALL)
    }


def told_of(runs: Runs, architecture: str) -> list[Run]:
    return [run for run in runs if architecture in (ALL, run["architecture"])]


def figures(runs: Runs, limit_s: float) -> dict[str, Any]:
    """Of one scheduler's runs. ``measured`` and ``busiest``: what flows over links carried on average, and in the
    busiest report, as shares of what they were given."""
    runs = list(runs)
    placed = [run for run in runs if run["placed"]]
    flows = [flow for run in placed for flow in run["flows"] if flow["given"]]
    delivered = [run["background_delivered"] for run in placed if run["background_delivered"] is not None]
    found: dict[str, Any] = {"runs": len(runs), "placed": len(placed)}
    found |= {"reached": sum(map(reached, placed)), "failed": sum(map(failed, placed))}
    for what in ("composite", "load_imbalance", "bandwidth_satisfaction", "local"):
        found[what] = spread(run["planned"][what] for run in placed)
    found["rate"] = spread(flow["mean"] for flow in flows)
    found["measured"] = spread(flow["mean"] / flow["given"] for flow in flows)
    found["busiest"] = spread(flow["most"] / flow["given"] for flow in flows)
    found["background"] = spread(delivered)
    found["seconds"] = spread(seconds(run, limit_s) for run in placed if not failed(run))
    return found


def reached(run: Run) -> bool:
    training = run["training"] if run["placed"] else None
    if training is None or not training["ended"]:
        return False
    return bool(training["best"] >= round(run["accuracy"], TOLD_DIGITS))


def failed(run: Run) -> bool:
    return bool(run["placed"] and run["failed"] is not None)


def seconds(run: Run, limit_s: float) -> float:
    """Of a run that had a place and did not fail. One that was cut in its first round had at least the limit."""
    return float(run["training"]["seconds"]) if run["training"] is not None else limit_s


@dataclass(frozen=True)
class Sooner:
    """How many times as long as a scheduler's the other's trainings took, seed by seed: the geometric mean, the least
    and the most. ``cut_mine``, ``cut_other``: pairs in which that side did not reach its accuracy."""

    pairs: int
    mean: float
    least: float
    most: float
    cut_mine: int
    cut_other: int


def sooner(runs: Runs, scheduler: str, other: str, limit_s: float) -> Sooner | None:
    """Over the pairs of runs in which both had a place and neither failed; None where there are none."""
    timed = [pair for pair in pairs(runs, scheduler, other) if all(run["placed"] and not failed(run) for run in pair)]
    if not timed:
        return None
    ratios = [seconds(against, limit_s) / seconds(run, limit_s) for run, against in timed]
    return Sooner(
        len(timed),
        geometric_mean(ratios),
        min(ratios),
        max(ratios),
        sum(not reached(run) for run, _ in timed),
        sum(not reached(against) for _, against in timed),
    )


@dataclass(frozen=True)
class LeftOut:
    """Pairs that no mean has. ``unplaced``: the scheduler had no place; ``other_unplaced``: it had one, the other had
    none; ``failed``: both had one, and one of them failed."""

    unplaced: int
    other_unplaced: int
    failed: int


def left_out(runs: Runs, scheduler: str, other: str) -> LeftOut:
    both = pairs(runs, scheduler, other)
    placed = [pair for pair in both if pair[0]["placed"]]
    each_placed = [pair for pair in placed if pair[1]["placed"]]
    some_failed = sum(any(map(failed, pair)) for pair in each_placed)
    return LeftOut(len(both) - len(placed), len(placed) - len(each_placed), some_failed)


def pairs(runs: Runs, scheduler: str, other: str) -> list[tuple[Run, Run]]:
    """Two schedulers' runs of the same job under the same load."""
    runs = list(runs)
    mine, theirs = by_instance(runs, scheduler), by_instance(runs, other)
    return [(run, theirs[key]) for key, run in mine.items() if key in theirs]


def by_instance(runs: Runs, scheduler: str) -> dict[tuple[int, str], Run]:
    return {(run["seed"], run["architecture"]): run for run in runs if run["scheduler"] == scheduler}


def by_seed(
    runs: Runs, scheduler: str, other: str, architectures: Sequence[str], limit_s: float
) -> dict[int, Sooner | None]:
    """Seed -> over the architectures, how many times as long the other took; None where one of them lacks its pair:
    means over different architectures cannot be compared."""
    runs = list(runs)
    parts = {seed: [run for run in runs if run["seed"] == seed] for seed in sorted({run["seed"] for run in runs})}
    found = {seed: sooner(part, scheduler, other, limit_s) for seed, part in parts.items()}
    return {seed: each if each and each.pairs == len(architectures) else None for seed, each in found.items()}


def times(runs: Runs) -> tuple[list[float], int]:
    """Seconds of the trainings that reached their accuracy, the shortest first; and how many runs there were."""
    runs = list(runs)
    return sorted(float(run["training"]["seconds"]) for run in runs if reached(run)), len(runs)
