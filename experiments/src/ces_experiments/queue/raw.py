"""Simulations one by one, as rows: each run, and each job in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ces_sim.outcome import Outcome


def job_rows(outcome: Outcome, where: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each job of a run, by arrival; times in seconds since the run began, None where it did not come to that.
    ``where``: what tells the run from others."""
    for fate in outcome.fates:
        job = fate.job
        yield {
            **where,
            "job": job.name,
            "tenant": job.tenant,
            "priority": job.priority,
            "tasks": len(job.tasks),
            "arrival_s": job.arrival_s,
            "duration_s": job.duration_s,
            "expected_s": job.expected_s,
            "started_s": fate.started_s,
            "ended_s": fate.ended_s,
            "left_s": fate.left_s,
            "waited_s": fate.waited_s,
            "bandwidth_satisfaction": fate.bandwidth_satisfaction,
            "load_imbalance": fate.load_imbalance,
            "stopped": fate.stopped,
            "refused_for": fate.refusals[-1] if fate.refusals else None,
        }
