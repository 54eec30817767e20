"""The online benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ces_core.bench.asking import network_in_words
from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, plus_minus

COLUMNS = (
    "solver", "accepted %", "mean wait, s", "CPU in use %", "links in use %", "L", "D", "composite", "ms p50", "ms p99",
    "most often blocked by",
)  # fmt: skip


def ranked(results: Mapping[str, Any]) -> list[str]:
    """The solvers, best first, by the mean share of accepted jobs over all loads."""
    return _best_first(list(results["loads"].values()))


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """One table for each load, best first by acceptance."""
    return [_grid(results["question"], load, found) for load, found in results["loads"].items()]


def _best_first(loads: Sequence[Mapping[str, Any]]) -> list[str]:
    def accepted(name: str) -> float:
        return float(sum(found["solvers"][name]["accepted"]["mean"] for found in loads))

    return sorted(loads[0]["solvers"], key=lambda name: (-accepted(name), name))


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    patience = question["patience_s"]
    waits = "as long as it takes" if patience is None else f"{patience:g} s at most"
    jobs = f"{question['jobs']} jobs of {question['trace']}" if question["trace"] else f"{question['jobs']} jobs"
    return (
        f"{jobs}, {network_in_words(question)}, regime {question['regime']}, {question['repeats']} times, seed "
        f"{question['seed']}; policy {question['policy']}, jobs wait {waits}"
    )


def _grid(question: Mapping[str, Any], load: str, found: Mapping[str, Any]) -> Grid:
    rows = [_row(name, found["solvers"][name]) for name in _best_first([found])]
    return Grid(f"Offered load {load}: {describe(question)}.", COLUMNS, rows)


def _row(name: str, found: Mapping[str, Any]) -> list[str]:
    return [
        name,
        _percent(found["accepted"]),
        plus_minus(found["wait_s"], 0),
        _percent(found["cpu"]),
        _percent(found["bandwidth"]),
        figure(found["load_imbalance"], "mean"),
        figure(found["bandwidth_satisfaction"], "mean"),
        plus_minus(found["composite"]),
        figure(found["wall_ms"], "p50", 2),
        figure(found["wall_ms"], "p99", 2),
        ", ".join(list(found["blocked_by"])[:2]) or "-",
    ]


def _percent(found: Mapping[str, Any]) -> str:
    scaled = {key: value * 100 for key, value in found.items() if key in ("mean", "std")}
    return plus_minus({"n": found["n"]} | scaled, 1)
