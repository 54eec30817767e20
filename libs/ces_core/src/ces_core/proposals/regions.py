"""What the nodes of a large cluster are worth, as a product of a few numbers raised to learned powers."""

from __future__ import annotations

import numpy as np

from ces_core.candidates import Rule
from ces_core.problem import FloatArray, Problem
from ces_core.proposals.weights import Weights

MOST_TASKS = 4.0
"""Room for more tasks than this on one node counts no further."""
TINY = 0.01
"""What nothing counts for, so that it has a logarithm."""
REGIONS, REGION_SIZE, POOL = 2, 16, 2
"""Learned regions are smaller than those by hand, so that their paths are found in a quarter of the time."""


def traits(problem: Problem) -> FloatArray:
    """Logarithms of each of :data:`~ces_core.proposals.weights.TRAITS` for each node: its room for tasks, its share not
    in use, the bandwidth of its links in typical flows, what its neighbours offer, and what theirs do. -inf where no
    task fits."""
    cluster = problem.cluster
    topology, nodes = cluster.topology, cluster.node_free.shape[1]
    mean = np.maximum(problem.demand.mean(axis=0), 1e-300)[:, None]
    wanted = problem.demand.max(axis=0) > 0
    room = (cluster.node_free[wanted] / mean[wanted]).min(axis=0) if wanted.any() else np.ones(nodes)
    room = np.minimum(room, MOST_TASKS) * problem.homes.any(axis=0)
    capacity = cluster.node_capacity[:2]
    calm = np.divide(cluster.node_free[:2], capacity, out=np.zeros_like(capacity), where=capacity > 0).mean(axis=0)
    typical = max(float(problem.flow_max.mean()), 1e-300) if len(problem.flows) else 1.0
    src, dst = topology.link_src, topology.link_dst
    free = np.minimum(cluster.bandwidth_free[: len(src)] / typical, 3.0)
    width = 0.5 * (np.bincount(src, free, nodes) + np.bincount(dst, free, nodes))
    passes = np.minimum(free, 1.0)
    near = np.bincount(src, passes * room[dst], nodes) + np.bincount(dst, passes * room[src], nodes)
    farther = np.bincount(src, passes * near[dst], nodes) + np.bincount(dst, passes * near[src], nodes)
    values = np.log(np.stack([room, calm, width, near, farther]) + TINY)
    values[:, room <= 0] = -np.inf
    return values


def rule_of(weights: Weights) -> Rule:
    """Regions by the learned powers."""

    def judge(problem: Problem) -> tuple[FloatArray, FloatArray]:
        logs = traits(problem)
        fits = np.isfinite(logs[0])
        logs[:, ~fits] = 0.0
        return np.exp(weights.centre @ logs) * fits, np.exp(weights.member @ logs) * fits

    return Rule(regions=REGIONS, size=REGION_SIZE, pool=POOL, judge=judge)
