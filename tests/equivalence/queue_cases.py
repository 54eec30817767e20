"""Queues: clusters of all regimes, jobs of several tenants that come and go, and settings of CES-Multi."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from equivalence.core_adapter import random_instance
from equivalence.placement_cases import REGIMES
from equivalence.record import Case

COUNT = 20
SOLVERS = ("default", "greedy", "search", "kubernetes")
TENANTS = [
    {"name": "a", "weight": 2.0, "guaranteed": {"cpu": 0.2}, "quota": {}},
    {"name": "b", "weight": 1.0, "guaranteed": {}, "quota": {"cpu": 0.5, "memory": 0.5}},
    {"name": "c", "weight": 1.0, "guaranteed": {}, "quota": {"bandwidth": 0.3}},
]


def queue_cases(share: float = 1.0) -> Iterator[Case]:
    """20 queues, or a share of them."""
    for i in range(max(1, round(COUNT * share))):
        rng = np.random.default_rng([77, i])
        nodes, count, load = (5, 8, 10)[i % 3], (20, 30)[i % 2], (0.05, 0.15, 0.4)[i // 2 % 3]
        jobs = _jobs(i, count, load, rng)
        yield {
            "name": f"queue-{i}",
            "seed": i,
            "instance": random_instance(REGIMES[i % 3], 700 + i, nodes=nodes, tasks=1),
            "solver": SOLVERS[i % 4],
            "patience_s": (None, 400.0)[i % 5 == 4],
            "parameters": _parameters(i),
            "jobs": jobs,
            "suspendable": [job["name"] for job in jobs if rng.random() < 0.5],
        }


def _jobs(i: int, count: int, load: float, rng: np.random.Generator) -> list[dict[str, Any]]:
    arrivals = np.cumsum(rng.exponential(1 / load, count)).tolist()
    jobs = []
    for j, arrival in enumerate(arrivals):
        asked = random_instance(REGIMES[i % 3], 9_000 + 100 * i + j, nodes=1, tasks=int(rng.integers(1, 6)))["job"]
        duration = float(rng.exponential(60.0))
        said = duration * float(rng.lognormal(0.0, 0.4)) if rng.random() < 0.8 else None
        jobs.append(
            {
                "name": f"j{j}",
                "arrival_s": arrival,
                "duration_s": duration,
                "expected_s": said,
                "priority": int(rng.choice([10, 50, 90], p=[0.2, 0.6, 0.2])),
                "tenant": str(rng.choice(["a", "b", "c"], p=[0.6, 0.25, 0.15])),
                "tasks": asked["tasks"],
                "flows": asked["flows"],
            }
        )
    return jobs


def _parameters(i: int) -> dict[str, Any]:
    return {
        "window": (8, None, 2)[i % 3],
        "starts": (None, 2)[i % 7 == 3],
        "weights": {"fit": 1.0, "priority": (0.5, 3.0)[i % 2], "waiting": 1.0, "share": (0.1, 2.0)[i // 2 % 2]},
        "bound_s": (200.0, 14_400.0)[i % 4 == 1],
        "overdue": (0.5, 0.0, None)[i // 3 % 3],
        "reservations": (4, 1, 0)[i // 4 % 3],
        "crowded": (0.5, None)[i % 5 == 2],
        "declined": (0.1, None)[i % 6 == 1],
        "patience_s": (300.0, 20.0)[i % 2],
        "preemption": 30 if i % 2 else None,
        "tenants": TENANTS if i % 3 != 1 else [],
    }
