"""The benchmark of queues as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ces_core.bench.drawing import confidence
from ces_core.bench.multi import LEAST_ALLOCATED, MULTI, SPARING
from ces_core.bench.results import Grid
from ces_core.bench.spread import figure, plus_minus
from ces_core.simulator.queueing import RIVALS

MANY = 10_000
"""With so many jobs the table of what simulating took is of interest."""
COLUMNS = (
    "policy", "mean wait, s", "less by, s", "p99 wait, s", "longest, s", "slowdown", "starved", "fairness", "D",
    "CPU %", "links %", "L", "makespan, s",
)  # fmt: skip
AGAINST: Mapping[str, tuple[str, bool]] = {
    "wait_s": ("mean wait, s", False),
    "wait_p99_s": ("p99 wait, s", False),
    "wait_max_s": ("longest wait, s", False),
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


def sparing(policies: Mapping[str, Any]) -> list[str]:
    """The same policies where they leave room as CES-Multi does."""
    return [name for name in policies if name.endswith(f" ({SPARING})")]


def best(policies: Mapping[str, Any], what: str, among: Iterable[str]) -> str:
    """The policy that is best by this measure alone."""
    sign = -1.0 if AGAINST[what][1] else 1.0
    return min(among, key=lambda name: (sign * policies[name][what]["mean"], name))


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """For each regime and load: against the best of the others, measure by measure, then all of them."""
    question, found = results["question"], []
    for regime, loads in results["regimes"].items():
        for load, told in loads.items():
            title = f"Regime {regime}, offered load {load}: {describe(question)}"
            if MULTI in told["policies"] and compared(told["policies"]):
                best_of = "CES-Multi against the best of the others by each measure alone."
                found.append(_against(f"{title}. {best_of}", told))
            note = "less by: the difference to CES-Multi, mean ± 95 % confidence; else mean ± standard deviation"
            found.append(_all(f"{title}. All policies, by mean wait; {note}.", told["policies"]))
    if question["jobs"] >= MANY:
        found.append(_cost(question, results["regimes"]))
    if "cycles" in results:
        found.append(_cycles(results["cycles"]))
    return found


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    jobs = f"{question['jobs']} jobs of {question['trace']}" if question["trace"] else f"{question['jobs']} jobs"
    stated = f", durations misjudged by {question['misjudged']:g}" if question["misjudged"] else ""
    return (
        f"{jobs} on {question['nodes']} nodes, {question['repeats']} times, seed {question['seed']}, solver "
        f"{question['solver']}, bound {question['bound_s']:g} s{stated}"
    )


def _against(title: str, told: Mapping[str, Any]) -> Grid:
    policies = told["policies"]
    rows = [[label, f"{policies[MULTI][what]['mean']:.4g}"] for what, (label, _) in AGAINST.items()]
    columns = ["measure", MULTI]
    for label, among in (("best of the others", compared(policies)), (f"and {SPARING}", sparing(policies))):
        if not among:
            continue
        columns += [label, "change", "which"]
        for what, row in zip(AGAINST, rows, strict=True):
            name = best(policies, what, among)
            ours, theirs = policies[MULTI][what]["mean"], policies[name][what]["mean"]
            change = f"{(ours / theirs - 1) * 100:+.1f} %" if theirs else "-"
            row += [f"{theirs:.4g}", change, name.removesuffix(f" ({SPARING})")]
    return Grid(title, columns, rows)


def _all(title: str, policies: Mapping[str, Any]) -> Grid:
    order = sorted(policies, key=lambda name: (policies[name]["wait_s"]["mean"], name))
    return Grid(title, COLUMNS, [_row(name, policies[name]) for name in order])


def _row(name: str, found: Mapping[str, Any]) -> Sequence[str]:
    return [
        name,
        plus_minus(found["wait_s"], 0),
        _ahead(found["ahead_s"]),
        plus_minus(found["wait_p99_s"], 0),
        plus_minus(found["wait_max_s"], 0),
        plus_minus(found["slowdown"], 1),
        plus_minus(found["starved"], 1),
        figure(found["fairness"], "mean"),
        plus_minus(found["satisfaction"]),
        f"{found['cpu']['mean'] * 100:.1f}",
        f"{found['bandwidth']['mean'] * 100:.1f}",
        figure(found["load_imbalance"], "mean"),
        plus_minus(found["makespan_s"], 0),
    ]


def _ahead(found: Mapping[str, Any]) -> str:
    return f"{found['mean']:.0f} ± {confidence(found)[1]:.0f}" if found["n"] > 1 and found["std"] else "-"


def _cost(question: Mapping[str, Any], regimes: Mapping[str, Any]) -> Grid:
    rows = [
        [f"{name}, {regime}, load {load}", f"{found['cpu_s']['mean']:.0f}", figure(found["cpu_s"], "max", 0), per_job]
        for regime, loads in regimes.items()
        for load, told in loads.items()
        for name, found in told["policies"].items()
        for per_job in [f"{found['cpu_s']['mean'] / question['jobs'] * 1e3:.2f}"]
    ]
    title = f"CPU time to simulate {question['jobs']} jobs, {question['repeats']} times."
    return Grid(title, ("run", "mean, s", "most, s", "a job, ms"), rows)


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
