"""What the benchmark of a fleet found, as tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.machine import in_words
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.control_plane.fleet.load import Fleet
from ces_experiments.control_plane.fleet.run import Question, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOLD = ("p50", "p90", "p99", "worst")
MIB = 2**20


def describe(results: Mapping[str, Any]) -> str:
    """What was asked, in a few words."""
    fleet = results["fleet"]
    return (
        f"{fleet['nodes']} nodes, a heartbeat each {fleet['interval_s']:g} s, leases of {fleet['lease_s']:g} s, "
        f"{results['database']}"
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What became of leases and jobs, how long everything took, and what the services used."""
    fleet, unknown = results["fleet"], "never"
    recovered = unknown if results["recovered_s"] is None else f"{results['recovered_s']:.1f}"
    states = ", ".join(f"{count} {state}" for state, count in sorted(results["states"].items()))
    run = [
        ("leases that ended", str(results["lapses"])),
        ("nodes that counted as unreachable", str(results["unreachable"])),
        ("jobs", states or "none"),
        ("plans committed", str(results["plans"])),
        ("heartbeats answered", f"{results['heartbeats']}, {results['heartbeats_per_s']:.0f} a second"),
        ("heartbeats without an answer in time", str(results["unanswered"])),
        ("links that went down and came up", f"{results['flaps']}, {results['links_changed']} changes told"),
        *(
            [(f"seconds until all leases were renewed after {fleet['stalled_s']:g} s of stall", recovered)]
            if fleet["stalled_s"]
            else []
        ),
    ]
    times = {
        "heartbeat round trip, ms": results["heartbeat_ms"],
        "API submission, ms": results["api_submit_ms"],
        "submit to running, ms": results["submit_to_running_ms"],
    }
    rows = [
        [what, *(f"{found[key]:,.1f}" for key in TOLD), str(found["count"])] for what, found in times.items() if found
    ]
    used = [
        (name, f"{cores:.2f}", f"{results['memory_bytes'][name] / MIB:.0f}" if name in results["memory_bytes"] else "-")
        for name, cores in results["cores"].items()
    ]
    title = f"{describe(results)}, {results['seconds']:.0f} s, seed {fleet['seed']} ({in_words(results['machine'])})"
    return [
        Grid(f"Fleet: {title}.", ("what", "found"), run),
        Grid("How long it took.", ("what", *TOLD, "n"), rows),
        Grid("What it took.", ("who", "cores in the mean", "memory at its most, MiB"), used),
    ]


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Round trips of heartbeats over time, with what befell the fleet."""
    fleet = Fleet(**results["fleet"])
    figure, [[axes]] = plots.panels(1, 1, width=8, height=4)
    for key in ("p50", "p99"):
        axes.plot(
            [row["seconds"] for row in results["over_time"]], [row[key] for row in results["over_time"]], label=key
        )
    axes.axvline(fleet.burst_s, color="#888888", linestyle=":", label=f"{fleet.jobs} jobs submitted")
    if fleet.stalled_s:
        axes.axvspan(fleet.stall_s, fleet.stall_s + fleet.stalled_s, color="#dddddd", label="manager stopped")
    axes.set(xlabel="seconds", ylabel="heartbeat round trip, ms", yscale="log", title=describe(results))
    axes.legend()
    return {"heartbeats.png": figure}


FLEET = Experiment(Question.of, measure, Report(tables, pictures))
