"""What the benchmark of the queue found, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import figure
from ces_experiments.control_plane.queue.run import Question, measure

WAIT = ("mean", "p50", "p99", "max")


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """How the run went, who waited for how long, and what the audit said."""
    load, audit = results["load"], results["audit"]
    offered = f"{load['rate']:g} a second" if load["rate"] else "at once"
    title = (
        f"{load['jobs']} jobs {offered} on {load['nodes']} simulated nodes, {results['database']}, seed {load['seed']}"
    )
    alike, victims = results["alike"], results["victims"]
    kills = ", ".join(f"{count} of {name}" for name, count in sorted(results["kills"].items()))
    run = [
        ("jobs", ", ".join(f"{count} {state}" for state, count in sorted(results["states"].items()))),
        ("seconds until the last was over", f"{results['seconds']:.0f}"),
        ("most jobs that waited at one time", str(results["longest_queue"])),
        ("plans that came to nothing", str(results["placed_again"])),
        ("managers, schedulers", f"{alike['managers']}, {alike['schedulers']}"),
        ("services killed", f"{sum(results['kills'].values())}" + (f": {kills}" if kills else "")),
        ("proposals", ", ".join(f"{count} {kind}s" for kind, count in sorted(results["proposals"].items()))),
        ("answers lost", str(len(results["answers_lost"]))),
        ("sets of victims, jobs in them", f"{victims['sets']}, {victims['jobs']}"),
        ("most sets at one time for one job", str(victims["sets_at_one_time"])),
        *((f"CPU of {name}, s", f"{used:.0f}") for name, used in results["cpu_s"].items()),
        ("events audited", str(audit["events"])),
        ("plans audited", str(audit["plans"])),
        ("findings", str(len(audit["findings"]))),
    ]
    waits = [
        (who, str(found["n"]), *(figure(found, key, 1) for key in WAIT)) for who, found in results["waits"].items()
    ]
    peaks = [(peak["what"], peak["where"], f"{peak['share'] * 100:.1f}", str(peak["event"])) for peak in audit["peaks"]]
    return [
        Grid(title, ("what", "found"), run),
        Grid("Seconds until a job had its place", ("jobs", "n", "mean", "median", "p99", "worst"), waits),
        Grid("Highest use at any instant", ("of", "where", "%", "event"), peaks),
    ]


QUEUE = Experiment(Question.of, measure, Report(tables))
