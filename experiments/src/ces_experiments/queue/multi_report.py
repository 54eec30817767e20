"""The benchmark of queues as tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ces_core.queue.policies import CES_MULTI
from ces_experiments.common import plots, words
from ces_experiments.common.command import Experiment
from ces_experiments.common.options import on_network
from ces_experiments.common.plots import Column
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import Spread, confidence, figure, of, percent, plus_minus
from ces_experiments.queue.multi import LEAST_ALLOCATED, SPARING, Question, measure
from ces_sim.queue_policies import RIVALS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 10_000
"""From this many jobs on, the table of what the simulation took is shown."""


def _ahead(found: Spread) -> str:
    return f"{found['mean']:.0f} ± {confidence(found)[1]:.0f}" if found["n"] > 1 and found["std"] else "-"


COLUMNS = {
    "mean wait, s": of("wait_s", plus_minus, 0),
    "less by, s": of("ahead_s", _ahead),
    "p99 wait, s": of("wait_p99_s", plus_minus, 0),
    "longest, s": of("wait_max_s", plus_minus, 0),
    "slowdown": of("slowdown", plus_minus, 1),
    "starved": of("starved", plus_minus, 1),
    "fairness": of("fairness", figure, "mean"),
    "D": of("satisfaction", plus_minus),
    "CPU %": of("cpu", percent),
    "links %": of("bandwidth", percent),
    "L": of("load_imbalance", figure, "mean"),
    "makespan, s": of("makespan_s", plus_minus, 0),
}
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
CYCLES = {
    "p50, ms": of("cycle_ms", figure, "p50", 1),
    "p99, ms": of("cycle_ms", figure, "p99", 1),
    "CPU p50, ms": of("cpu_ms", figure, "p50", 1),
    "CPU p99, ms": of("cpu_ms", figure, "p99", 1),
    "CPU most, ms": of("cpu_ms", figure, "max", 1),
    "solver asked, mean": of("asked", figure, "mean", 1),
}
SHOWN = (
    Column("wait_s", "mean wait, s"),
    Column("wait_p99_s", "p99 wait, s"),
    Column("wait_max_s", "longest wait, s"),
    Column("satisfaction", "satisfaction"),
    Column("cpu", "CPU in use, %", 100.0),
    Column("fairness", "fairness (Jain)"),
)


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


def by_wait(policies: Mapping[str, Any], among: Iterable[str]) -> list[str]:
    """Those of the policies that ran, least mean wait first."""
    return sorted(set(among) & set(policies), key=lambda name: (policies[name]["wait_s"]["mean"], name))


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    stated = f", durations misjudged by {question['misjudged']:g}" if question["misjudged"] else ""
    return (
        f"{words.jobs(question)} on {_cluster(question)}, {words.times(question['repeats'])}, seed {question['seed']}, "
        f"solver {question['solver']}, bound {question['bound_s']:g} s{stated}"
    )


def _cluster(question: Mapping[str, Any]) -> str:
    random = question.get("topology", "random") == "random"
    return f"{question['nodes']} nodes" if random else f"a {words.network(question)}"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """For each regime and load: against the best of the others, measure by measure, then all of them."""
    question, found = results["question"], []
    for regime, loads in results["regimes"].items():
        for load, told in loads.items():
            policies = told["policies"]
            offered = words.offered(load)
            title = f"Regime {regime}, {offered[0].lower()}{offered[1:]}: {describe(question)}"
            if CES_MULTI in policies and compared(policies):
                best_of = "CES-Multi against the best of the others by each measure alone."
                found.append(_against(f"{title}. {best_of}", policies))
            note = "less by: the difference to CES-Multi, mean ± 95 % confidence; else mean ± standard deviation"
            rows = [(name, policies[name]) for name in by_wait(policies, policies)]
            found.append(Grid.of(f"{title}. All policies, by mean wait; {note}.", "policy", COLUMNS, rows))
    if question["jobs"] >= MANY:
        found.append(_cost(question, results["regimes"]))
    if "cycles" in results:
        found.append(_cycles(results["cycles"]))
    return found


def _against(title: str, policies: Mapping[str, Any]) -> Grid:
    rows = [[label, f"{policies[CES_MULTI][what]['mean']:.4g}"] for what, (label, _) in AGAINST.items()]
    columns = ["measure", CES_MULTI]
    for label, among in (("best of the others", compared(policies)), (f"and {SPARING}", sparing(policies))):
        if not among:
            continue
        columns += [label, "change", "which"]
        for what, row in zip(AGAINST, rows, strict=True):
            name = best(policies, what, among)
            ours, theirs = policies[CES_MULTI][what]["mean"], policies[name][what]["mean"]
            change = f"{(ours / theirs - 1) * 100:+.1f} %" if theirs else "-"
            row += [f"{theirs:.4g}", change, name.removesuffix(f" ({SPARING})")]
    return Grid(title, columns, rows)


def _cost(question: Mapping[str, Any], regimes: Mapping[str, Any]) -> Grid:
    columns = {
        "mean, s": of("cpu_s", figure, "mean", 0),
        "most, s": of("cpu_s", figure, "max", 0),
        "a job, ms": lambda found: f"{found['cpu_s']['mean'] / question['jobs'] * 1e3:.2f}",
    }
    rows = [
        (f"{name}, {regime}, load {load}", found)
        for regime, loads in regimes.items()
        for load, told in loads.items()
        for name, found in told["policies"].items()
    ]
    title = f"CPU time to simulate {question['jobs']} jobs, {question['repeats']} times."
    return Grid.of(title, "run", columns, rows)


def _cycles(cycles: Mapping[str, Any]) -> Grid:
    crowd = cycles["crowd"]
    title = (
        f"Time of a cycle with {crowd['waiting']} waiting jobs on {crowd['nodes']} nodes, regime {crowd['regime']}, "
        f"solver {crowd['solver']}, all that it was asked included."
    )
    return Grid.of(title, "cycles", CYCLES, [(str(cycles["cycle_ms"]["n"]), cycles)])


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """For each regime one picture of the policies at all loads, and two at the highest load: the policies that leave
    room, and the ablations."""
    drawn = {}
    for regime, loads in results["regimes"].items():
        rows = {f"load {load}": told["policies"] for load, told in loads.items()}
        most, last = list(rows.items())[-1]
        rivals, roomy = compared(last), sparing(last)
        for name, shown, lines in (
            (f"{regime}.png", rows, [CES_MULTI, *rivals]),
            (f"{regime}-sparing.png", {most: last}, [CES_MULTI, *roomy] if roomy else []),
            (f"{regime}-ablations.png", {most: last}, set(last) - {*rivals, *roomy}),
        ):
            if order := by_wait(last, lines):
                text = f"regime {regime}; {describe(results['question'])}; bars: 95 % confidence"
                drawn[name] = plots.caption(plots.dots(shown, SHOWN, order), text)
    return drawn


REPORT = Report(tables, pictures)
QUEUES = Experiment(on_network(Question.of, 20), measure, REPORT)
