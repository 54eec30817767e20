"""The control-plane benchmark's results as a table and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.machine import in_words
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.control_plane.experiment import Question, measure
from ces_experiments.control_plane.load import STAGES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOLD = ("p50", "p90", "p99", "worst")


def describe(results: Mapping[str, Any]) -> str:
    """What was asked, in a few words."""
    load = results["load"]
    return f"{load['nodes']} nodes, {load['jobs']} jobs of {load['tasks']} tasks, {results['database']}"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """How long everything took, and what else there is to a job."""
    load, stages = results["load"], results["stages_ms"]
    offered = f"{load['rate']:g} jobs/s offered" if load["rate"] else "all at once"
    title = f"{describe(results)}, {offered}, seed {load['seed']} ({in_words(results['machine'])})"
    times = {"submit to running, ms": results["submit_to_running_ms"]}
    times |= {f"{stage}, ms": found for stage, found in stages.items()}
    times |= {"API submission, ms": results["api_submit_ms"], "heartbeat round trip, ms": results["heartbeat_ms"]}
    alike = results["alike"]
    others = {
        "managers / schedulers": f"{alike['managers']} / {alike['schedulers']}",
        "jobs brought to running per second": f"{results['jobs_per_s']:g}",
        "jobs running / succeeded": f"{results['running']} / {results['succeeded']}",
        "events per job": f"{results['events_per_job']:g}",
        "messages per job, heartbeats left out": f"{results['messages_per_job']:g}",
        "heartbeats answered per second": f"{results['heartbeats_per_s']:g}",
    }
    others |= {f"CPU per job, {name}, ms": f"{cpu:g}" for name, cpu in results["cpu_ms_per_job"].items()}
    rows = [
        [what, *(f"{found[key]:,.1f}" for key in TOLD), str(found["count"])] for what, found in times.items() if found
    ]
    return [
        Grid(f"Control plane: {title}.", ("what", *TOLD, "n"), rows),
        Grid("What else was counted.", ("what", "found"), list(others.items())),
    ]


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Share of jobs running by time since submission; jobs per state over time."""
    title, reached = describe(results), results["reached_s"]
    waits = np.sort([job["running"] - job["queued"] for job in reached if "running" in job])
    latency, [[axes]] = plots.panels(1, 1, width=7, height=4)
    axes.step(waits, np.arange(1, len(waits) + 1) / len(waits), where="post")
    axes.set(xlabel="seconds from submission to running", ylabel="share of jobs", title=title, ylim=(0, 1.02))
    axes.set_xlim(left=0)
    progress, [[axes]] = plots.panels(1, 1, width=7, height=4)
    for state in (*STAGES, "succeeded"):
        times = np.sort([job[state] for job in reached if state in job])
        if len(times):
            axes.step(times, np.arange(1, len(times) + 1), where="post", label=state)
    axes.set(xlabel="seconds", ylabel="jobs that have reached the state", title=title)
    axes.legend()
    return {"latency.png": latency, "progress.png": progress}


REPORT = Report(tables, pictures)
CONTROL_PLANE = Experiment(Question.of, measure, REPORT)
