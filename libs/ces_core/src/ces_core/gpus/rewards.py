"""The reward of the EADE-DDPG paper (eqs 15 to 17) in its two readings, for every cluster that a task may go to.

Hu et al., "Multi-cluster computing power resource scheduling algorithm based on DDPG reinforcement learning", Journal
on Communications, 2025.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from ces_core.gpus.clusters import Clusters, Floats, wanted
from ces_core.gpus.model import Asked

TAU = 10.0
WRONG = -50.0
"""For a cluster where the task does not fit, and for waiting where it fits."""


class Reading(StrEnum):
    """``AFTER``: the chosen cluster among all, after the step; steady levels earn most. ``THOUGHT``: among those where
    the task fits, each with the task on it; the fullest earns most."""

    AFTER = "after"
    THOUGHT = "thought"


def mean_use(clusters: Clusters) -> Floats:
    """Eq 8: of each cluster the mean of what is used of its four resources, shape (clusters,)."""
    found: Floats = clusters.used().mean(axis=1)
    return found


def with_task(clusters: Clusters, task: Asked) -> Floats:
    """The same with the task on it, shape (clusters,)."""
    found: Floats = mean_use(clusters) + (wanted(task) / clusters.total).mean(axis=1)
    return found


def rewards(clusters: Clusters, task: Asked, reading: Reading) -> Floats:
    """Before the step: of each cluster, and in the last place of waiting. Shape (clusters + 1,)."""
    there = clusters.hosts(task) >= 0
    found = np.full(clusters.count + 1, WRONG)
    if not there.any():
        found[-1] = 0.0
        return found
    after = with_task(clusters, task)
    if reading is Reading.THOUGHT:
        score = scaled(after, after[there].min(), after[there].max())
    else:
        now = mean_use(clusters)
        others = np.where(np.eye(clusters.count, dtype=bool), after[:, None], now[None, :])  # row: chosen cluster
        score = scaled(after, others.min(axis=1), others.max(axis=1))
    found[:-1][there] = (score[there] - 1.0) * TAU
    return found


def scaled(value: Floats, least: Floats, most: Floats) -> Floats:
    """Between 0 and 1; 0 where the most is the least."""
    span = np.asarray(most - least)
    return np.where(span > 0, (value - least) / np.where(span > 0, span, 1.0), 0.0)
