"""Learned choice of regions in a large cluster: a node's weight is a product of traits raised to learned powers."""

from __future__ import annotations

import numpy as np

from ces_core.learned.start.weights import Weights
from ces_core.model.problem import FloatArray, Problem
from ces_core.placement.candidates import Rule

MOST_TASKS = 4.0
"""Residual capacity of a node for more tasks than this does not count."""
TINY = 0.01
"""The value for zero, so that it has a logarithm."""
REGIONS, REGION_SIZE, POOL = 2, 16, 2
"""Learned regions are smaller than hand-made ones, so that their paths are found in a quarter of the time."""
WIDE_SIZE, WIDE_POOL = 32, 3
"""Those where there is time for more paths."""


def traits(problem: Problem) -> FloatArray:
    """Logarithms of each of :data:`~ces_core.learned.start.weights.TRAITS` for each node: the tasks it holds, its free
    share, the bandwidth of its links in typical flows, what its neighbours offer, and what theirs do. -inf if no task
    fits."""
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


def rule_of(weights: Weights, wide: bool = False) -> Rule:
    """The rule that chooses regions by the learned powers. ``wide``: larger ones, of more nodes to choose from."""

    def judge(problem: Problem) -> tuple[FloatArray, FloatArray]:
        logs = traits(problem)
        fits = np.isfinite(logs[0])
        logs[:, ~fits] = 0.0
        return np.exp(weights.centre @ logs) * fits, np.exp(weights.member @ logs) * fits

    size, pool = (WIDE_SIZE, WIDE_POOL) if wide else (REGION_SIZE, POOL)
    return Rule(regions=REGIONS, size=size, pool=pool, judge=judge)
