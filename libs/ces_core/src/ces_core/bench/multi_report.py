"""The benchmark of queues as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ces_core.bench.multi import LEAST_ALLOCATED, MULTI
from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, plus_minus
from ces_core.simulator.queueing import RIVALS

COLUMNS = (
    "policy", "mean wait, s", "p99 wait, s", "slowdown", "starved", "fairness", "D", "CPU %", "links %", "L",
    "makespan, s",
)  # fmt: skip
AGAINST: Mapping[str, tuple[str, bool]] = {
    "wait_s": ("mean wait, s", False),
    "wait_p99_s": ("p99 wait, s", False),
    "slowdown": ("slowdown", False),
    "starved": ("starved", False),
    "fairness": ("fairness", True),
    "satisfaction": ("bandwidth satisfaction", True),
    "cpu": ("CPU in use", True),
    "load_imbalance": ("load imbalance", False),
    "makespan_s": ("makespan, s", False),
}
"""Measure -> its name, and whether more is better."""


def compared(policies: Mapping[str, Any]) -> list[str]:
    """The policies that CES-Multi is compared with, with either placement."""
    names = [policy.name for policy in RIVALS]
    return [name for name in policies if name.removesuffix(f" ({LEAST_ALLOCATED})") in names]


def best(policies: Mapping[str, Any], what: str) -> str:
    """The compared policy that is best by this measure alone."""
    sign = -1.0 if AGAINST[what][1] else 1.0
    return min(compared(policies), key=lambda name: (sign * policies[name][what]["mean"], name))


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """For each regime and load: against the best of the others, measure by measure, then all of them."""
    question, found = results["question"], []
    for regime, loads in results["regimes"].items():
        for load, told in loads.items():
            title = f"Regime {regime}, offered load {load}: {describe(question)}"
            found.append(_against(f"{title}. CES-Multi against the best of the others by each measure alone.", told))
            found.append(_all(f"{title}. All policies, by mean wait.", told["policies"]))
    if "cycles" in results:
        found.append(_cycles(results["cycles"]))
    return found


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    jobs = f"{question['jobs']} jobs of {question['trace']}" if question["trace"] else f"{question['jobs']} jobs"
    return (
        f"{jobs} on {question['nodes']} nodes, {question['repeats']} times, seed {question['seed']}, solver "
        f"{question['solver']}, bound {question['bound_s']:g} s"
    )


def _against(title: str, told: Mapping[str, Any]) -> Grid:
    policies, rows = told["policies"], []
    for what, (label, _) in AGAINST.items():
        name = best(policies, what)
        ours, theirs = policies[MULTI][what]["mean"], policies[name][what]["mean"]
        change = f"{(ours / theirs - 1) * 100:+.1f} %" if theirs else "-"
        rows.append([label, f"{ours:.4g}", f"{theirs:.4g}", change, name])
    return Grid(title, ("measure", MULTI, "best of the others", "change", "which"), rows)


def _all(title: str, policies: Mapping[str, Any]) -> Grid:
    order = sorted(policies, key=lambda name: (policies[name]["wait_s"]["mean"], name))
    return Grid(title, COLUMNS, [_row(name, policies[name]) for name in order])


def _row(name: str, found: Mapping[str, Any]) -> Sequence[str]:
    return [
        name,
        plus_minus(found["wait_s"], 0),
        plus_minus(found["wait_p99_s"], 0),
        plus_minus(found["slowdown"], 1),
        plus_minus(found["starved"], 1),
        figure(found["fairness"], "mean"),
        plus_minus(found["satisfaction"]),
        f"{found['cpu']['mean'] * 100:.1f}",
        f"{found['bandwidth']['mean'] * 100:.1f}",
        figure(found["load_imbalance"], "mean"),
        plus_minus(found["makespan_s"], 0),
    ]


def _cycles(cycles: Mapping[str, Any]) -> Grid:
    crowd, waits, computes = cycles["crowd"], cycles["cycle_ms"], cycles["cpu_ms"]
    title = (
        f"Time of a cycle with {crowd['waiting']} waiting jobs on {crowd['nodes']} nodes, regime {crowd['regime']}, "
        f"solver {crowd['solver']}, all that it was asked included."
    )
    columns = ("cycles", "p50, ms", "p99, ms", "CPU p50, ms", "CPU p99, ms", "CPU most, ms", "solver asked, mean")
    row = [
        str(waits["n"]),
        *(figure(waits, key, 1) for key in ("p50", "p99")),
        *(figure(computes, key, 1) for key in ("p50", "p99", "max")),
        figure(cycles["asked"], "mean", 1),
    ]
    return Grid(title, columns, [row])
