"""``first-fit-decreasing``: the largest task first, each on the first node that holds it (vector bin packing).

A task's size is its dominant share: the largest, over CPU, memory and GPU, of what it asks for relative to the
cluster's capacity. Nodes are taken in the order in which the instance lists them.
"""

from __future__ import annotations

import numpy as np

from ces_core.baselines.baseline import Baseline
from ces_core.baselines.sequential import Placement, place
from ces_core.model.problem import FloatArray, Problem


def sizes(problem: Problem) -> FloatArray:
    """(tasks,): dominant shares."""
    capacity = problem.cluster.node_capacity.sum(axis=1)
    shares = np.divide(problem.demand, capacity, out=np.zeros_like(problem.demand), where=capacity > 0)
    return np.asarray(shares.max(axis=1))


def first_fit(problem: Problem, rng: np.random.Generator) -> Placement:
    order = np.argsort(-sizes(problem), kind="stable").tolist()
    return place(problem, order, lambda view: -np.arange(len(view.chosen), dtype=np.float64))


FIRST_FIT_DECREASING = Baseline(
    "first-fit-decreasing", "the largest task first, on the first node with room", first_fit
)
