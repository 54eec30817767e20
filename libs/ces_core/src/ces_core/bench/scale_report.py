"""The scale benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, percent, plus_minus

COLUMNS = (
    "solver and time limit", "first, ms", "new job p50, ms", "paths known p50, ms", "p99, ms", "placed %",
    "composite, 0 if unplaced", "below best known", "memory, MiB", "of it since the cluster was read",
)  # fmt: skip


def entries(results: Mapping[str, Any]) -> list[str]:
    """The solvers with their time limits, best first by the mean over all sizes."""
    sizes = [found["entries"] for found in results["sizes"].values()]
    return sorted(sizes[0], key=lambda name: (-sum(each[name]["composite_or_0"]["mean"] for each in sizes), name))


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    return (
        f"{question['jobs']} jobs of {question['tasks']} tasks on each size, {question['topology']} network, regime "
        f"{question['regime']}, seed {question['seed']}"
    )


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """One table for each size."""
    question = results["question"]
    return [
        Grid(
            f"{nodes} nodes, {found['links']} links: {describe(question)}; best known: all that is here, and "
            f"{question['reference']} with {question['reference_s']:g} s for each job, which together placed "
            f"{found['placed_by_somebody']}.",
            COLUMNS,
            [_row(name, found["entries"][name]) for name in entries(results)],
        )
        for nodes, found in results["sizes"].items()
    ]


def _row(name: str, found: Mapping[str, Any]) -> list[str]:
    return [
        name,
        figure(found["first_ms"], "p50", 1),
        figure(found["new_ms"], "p50", 2),
        figure(found["wall_ms"], "p50", 2),
        figure(found["wall_ms"], "p99", 2),
        percent(found["placed"]),
        plus_minus(found["composite_or_0"]),
        figure(found["regret"], "mean", 4),
        figure(found["memory_mib"], "p50", 0),
        figure(found["memory_grown_mib"], "p50", 0),
    ]
