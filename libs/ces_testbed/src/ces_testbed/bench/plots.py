"""Plots of the control-plane benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ces_core.bench.drawing import panels, save
from ces_testbed.bench.load import STAGES, Moments, waits
from ces_testbed.bench.outcome import Outcome


def control_plane_plots(outcome: Outcome, moments: Moments, out: Path) -> None:
    """``latency.png``: share of jobs running by time since submission; ``progress.png``: jobs per state over time."""
    load = outcome.load
    title = f"{load.nodes} nodes, {load.jobs} jobs of {load.tasks} tasks, {outcome.database}"
    values = np.sort(waits(moments))
    figure, [[axes]] = panels(1, 1, width=7, height=4)
    axes.step(values, np.arange(1, len(values) + 1) / len(values), where="post")
    axes.set(xlabel="seconds from submission to running", ylabel="share of jobs", title=title, ylim=(0, 1.02))
    axes.set_xlim(left=0)
    save(figure, out / "latency.png")

    first = min(reached["queued"] for reached in moments.values())
    figure, [[axes]] = panels(1, 1, width=7, height=4)
    for state in (*STAGES, "succeeded"):
        times = np.sort([(m[state] - first).total_seconds() for m in moments.values() if state in m])
        if len(times):
            axes.step(times, np.arange(1, len(times) + 1), where="post", label=state)
    axes.set(xlabel="seconds", ylabel="jobs that have reached the state", title=title)
    axes.legend()
    save(figure, out / "progress.png")
