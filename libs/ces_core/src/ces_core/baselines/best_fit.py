"""``best-fit``: each task, in the job's order, on the node that it leaves with least (vector bin packing).

What is left is measured in absolute terms, CPU and memory each relative to the cluster's largest node, and added up.
Measured as shares of the node's own capacity, this would be ``most-allocated``.
"""

from __future__ import annotations

import numpy as np

from ces_core.baselines.baseline import Baseline
from ces_core.baselines.sequential import Placement, View, place
from ces_core.model.problem import FloatArray, Problem


def left_over(view: View) -> FloatArray:
    """(nodes,): CPU and memory left with the task there, relative to the largest node's capacity."""
    capacity = view.problem.cluster.node_capacity[:2]
    largest = capacity.max(axis=1, keepdims=True)
    left = capacity - view.used[:2] - view.demand[:2, None]
    return np.asarray(np.divide(left, largest, out=np.zeros_like(left), where=largest > 0).sum(axis=0))


def tightest(problem: Problem, rng: np.random.Generator) -> Placement:
    return place(problem, range(len(problem.tasks)), lambda view: -left_over(view))


BEST_FIT = Baseline("best-fit", "the node where the task leaves least room", tightest)
