"""What is offered to a simulation: the cluster, and at what pace jobs come to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.problem import Cluster
from ces_sim.arrivals import TimedJob


def drawn_cluster(regime: str, seed: int, *, nodes: int | None, topology: str = "random") -> Cluster:
    """The cluster that this seed draws; ``nodes`` and ``topology`` as :func:`ces_core.model.generate.random_instance`
    takes them."""
    return read_instance(random_instance(regime, seed, nodes=nodes, tasks=1, topology=topology)).cluster


def paced(jobs: Sequence[TimedJob], cluster: Cluster, load: float) -> list[TimedJob]:
    """The same jobs in the same rhythm, at the pace that offers ``load``.

    That is what they ask for, times how long, over what is free at the start, times how long they take to arrive; of
    CPU or memory, whichever is scarcer.
    """
    asked = np.array([[sum(task.cpu for task in job.tasks), sum(task.memory for task in job.tasks)] for job in jobs])
    work = asked.T @ np.array([job.duration_s for job in jobs])
    span = float((work / cluster.node_free[:2].sum(axis=1)).max()) / load
    return stretched(jobs, span / (jobs[-1].arrival_s or 1.0))


def stretched(jobs: Sequence[TimedJob], factor: float) -> list[TimedJob]:
    """The same jobs with every arrival time multiplied by ``factor``."""
    return [replace(job, arrival_s=job.arrival_s * factor) for job in jobs]
