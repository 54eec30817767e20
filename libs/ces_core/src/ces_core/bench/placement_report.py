"""The placement benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ces_core.bench.asking import network_in_words
from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, percent, plus_minus

COLUMNS = (
    "solver", "placed %", "composite", "composite, 0 if unplaced", "L", "D", "below best known", "optimal %",
    "ms p50", "ms p99",
)  # fmt: skip


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """One table for each regime; best first by the composite that counts jobs without a place as 0."""
    return [_grid(results["question"], regime, found) for regime, found in results["regimes"].items()]


def ranked(results: Mapping[str, Any]) -> list[str]:
    """The solvers, best first, by the mean over all regimes."""
    return best_first(list(results["regimes"].values()))


def best_first(regimes: Sequence[Mapping[str, Any]]) -> list[str]:
    def quality(name: str) -> float:
        return float(sum(found["solvers"][name]["all_tasks"]["composite_or_0"]["mean"] for found in regimes))

    return sorted(regimes[0]["solvers"], key=lambda name: (-quality(name), name))


def _grid(question: Mapping[str, Any], regime: str, found: Mapping[str, Any]) -> Grid:
    sizes = question["tasks"]
    span = f"{sizes[0]}-{sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
    limit = question["time_limit_s"]
    title = (
        f"Regime {regime}: {found['instances']} jobs of {span} tasks, {network_in_words(question)}, seed "
        f"{question['seed']}, {f'{limit * 1e3:g} ms' if limit else 'no limit'} for each decision. "
        f"{found['placed_by_somebody']} were placed by some solver, {found['placed_by_all']} by all; "
        f"{found['proven_optima']} optima are proven, {found['proven_impossible']} jobs proven to have no place"
    )
    took = found["truth_cpu_ms"]
    if took["n"]:
        title += f"; that took {took['p50']:.1f} ms of CPU time in the median, {took['max'] / 1e3:.2f} s at most"
    title += "."
    rows = [_row(name, found["solvers"][name]["all_tasks"]) for name in best_first([found])]
    best = found["best_known"]["all_tasks"]["composite"]
    share = f"{100 * found['placed_by_somebody'] / found['instances']:.1f}"
    rows.append(["best known", share, plus_minus(best), *["-"] * (len(COLUMNS) - 3)])
    return Grid(title, COLUMNS, rows)


def _row(name: str, found: Mapping[str, Any]) -> list[str]:
    return [
        name,
        percent(found["placed"]),
        plus_minus(found["composite"]),
        plus_minus(found["composite_or_0"]),
        figure(found["load_imbalance"], "mean"),
        figure(found["bandwidth_satisfaction"], "mean"),
        figure(found["regret"], "mean", 5),
        percent(found["optimal"]),
        figure(found["wall_ms"], "p50", 2),
        figure(found["wall_ms"], "p99", 2),
    ]
