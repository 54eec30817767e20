"""What a simulated queue comes to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ces_sim.outcome import Fate, Outcome

MEASURES = (
    "wait_s", "wait_p99_s", "wait_max_s", "slowdown", "starved", "fairness", "satisfaction", "cpu", "bandwidth",
    "load_imbalance", "makespan_s", "unplaced", "decision_ms",
)  # fmt: skip
"""See :func:`measures`."""
SHORTEST_S = 10.0
"""In slowdowns, a job that runs for less counts as running for this long."""


def measures(outcome: Outcome, bound_s: float) -> dict[str, float]:
    """Over all jobs that ran: mean, 99th percentile and most of waiting, mean slowdown (waiting and running by
    running), how many waited longer than the bound, Jain's index over tenants, mean bandwidth satisfaction. Of the
    cluster from a fifth of the arrivals to the last: CPU and bandwidth in use, load imbalance. ``makespan_s``: from the
    first arrival to the last end. ``unplaced``: jobs that were given up. ``decision_ms``: mean time of an answer."""
    ran = outcome.accepted
    waits = np.array([fate.waited_s for fate in ran], dtype=np.float64)
    return {
        "wait_s": float(waits.mean()),
        "wait_p99_s": float(np.percentile(waits, 99)),
        "wait_max_s": float(waits.max()),
        "slowdown": float(np.mean([_slowdown(fate) for fate in ran])),
        "starved": float((waits > bound_s).sum()),
        "fairness": jain(by_tenant(ran)),
        "satisfaction": float(np.mean([fate.bandwidth_satisfaction for fate in ran])),
        "cpu": outcome.filled("cpu") or 0.0,
        "bandwidth": outcome.filled("bandwidth") or 0.0,
        "load_imbalance": outcome.filled("load_imbalance") or 0.0,
        "makespan_s": max(fate.ended_s or 0.0 for fate in ran) - outcome.fates[0].job.arrival_s,
        "unplaced": float(len(outcome.fates) - len(ran)),
        "decision_ms": float(np.mean(outcome.decision_wall_s)) * 1e3,
    }


def _slowdown(fate: Fate) -> float:
    runs = max(fate.job.duration_s, SHORTEST_S)
    return ((fate.waited_s or 0.0) + runs) / runs


def by_tenant(fates: Sequence[Fate]) -> list[float]:
    """Per tenant, the mean over its jobs of running by waiting and running: 1 where nobody waits."""
    found: dict[str, list[float]] = {}
    for fate in fates:
        found.setdefault(fate.job.tenant, []).append(1.0 / _slowdown(fate))
    return [sum(shares) / len(shares) for shares in found.values()]


def jain(shares: Sequence[float]) -> float:
    """Jain's index: 1 where all have the same, 1/n where one has all."""
    squares = sum(share**2 for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
