"""``flexitask``: filter by fit and load, then score idleness, balance and heat (thesis 4.3.1).

The thesis describes a two-stage scheduler in the manner of Kubernetes whose thresholds and weights it does not give,
and whose own paper could not be found; stages and terms resemble the dynamic plugin of Crane's scheduler. The reading:

- average: the load before this job, of CPU and of memory, which is what measurements show when the job arrives;
- peak: the load with everything that is booked by then and the task, which is the highest it can rise to;
- idleness: what is left of CPU and memory with the task there, their mean;
- balance: how near the use of CPU and that of memory are to each other with the task there;
- heat: which share of the job's tasks the node was chosen for already, since their load does not show yet.

A node at or below both thresholds is admitted. Crane's own thresholds (0.65 and 0.75) are meant for measured load; an
instance knows what is reserved, which is more. So the defaults here are such that thresholds alone refuse little: a
peak of 0.95 costs five to twelve jobs in a hundred on the benchmark's networks, one of 0.75 most of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.baselines.baseline import Baseline, Placer, weights, within
from ces_core.baselines.sequential import Placement, View, place
from ces_core.model.problem import SLACK, BoolArray, FloatArray, Problem


@dataclass(frozen=True)
class FlexiTaskSettings:
    """Thresholds as shares of capacity; of the weights, only the ratios matter."""

    average: float = 0.85
    peak: float = 1.0
    idleness: float = 1.0
    balance: float = 1.0
    heat: float = 1.0

    def __post_init__(self) -> None:
        within(self, 0.0, 1.0, "average", "peak")
        weights(self, "idleness", "balance", "heat")


def admits(view: View, settings: FlexiTaskSettings) -> BoolArray:
    """(nodes,): whether average and peak load stay within the thresholds."""
    cluster = view.problem.cluster
    capacity = cluster.node_capacity[:2]
    before = np.divide(cluster.node_used[:2], capacity, out=np.zeros_like(capacity), where=capacity > 0)
    within_average = (before <= settings.average).all(axis=0)
    within_peak = (view.share_with_task() <= settings.peak * (1 + SLACK)).all(axis=0)
    return np.asarray(within_average & within_peak)


def score(view: View, settings: FlexiTaskSettings) -> FloatArray:
    """(nodes,): weighted idleness and balance, less weighted heat."""
    cpu, memory = view.share_with_task()
    idleness = 1.0 - 0.5 * (cpu + memory)
    balance = 1.0 - np.abs(cpu - memory)
    heat = view.chosen / len(view.problem.tasks)
    return np.asarray(settings.idleness * idleness + settings.balance * balance - settings.heat * heat)


def placer(settings: FlexiTaskSettings) -> Placer:
    """The placement rule with these settings."""

    def in_two_stages(problem: Problem, rng: np.random.Generator) -> Placement:
        tasks = range(len(problem.tasks))
        return place(problem, tasks, lambda view: score(view, settings), lambda view: admits(view, settings))

    return in_two_stages


FLEXITASK = Baseline("flexitask", "load thresholds, then idleness, balance and heat", placer(FlexiTaskSettings()))
