"""``grc``: virtual network embedding by global resource capacity (Gong, Wen, Zhu, Lee, INFOCOM 2014).

A node's rank is its own capacity and, damped, that of the nodes around it, as far as bandwidth leads there: ``r = (1 -
d) c + d M r``, where ``c`` is the node's share of all free capacity and ``M[u, v]`` the share of the bandwidth between
``u`` and ``v`` in all bandwidth of ``v``. Tasks are ranked in the same way, by demand. Then large goes to large: tasks
by falling rank, each to the node of the highest rank that holds it.

The paper knows only CPU and undirected links. Here, capacity is the mean of the shares of CPU, memory and GPU, over
those the job asks for; the bandwidth between two nodes is what is free both ways, and that between two tasks the sum of
their minimums both ways. Flows from and to given nodes do not count towards ranks. The paper removes links that are too
narrow and takes shortest paths; here the common bandwidth step does that. A failed mapping is not tried again.

``grc`` puts at most one task on a node, as the paper does, so a job with more tasks than nodes has no place.
``grc-shared`` lets tasks share a node and ranks the nodes again after each, by residual capacity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.baselines.baseline import Baseline, Placer, within
from ces_core.baselines.sequential import Placement, View, place
from ces_core.model.problem import BoolArray, FloatArray, Problem
from ces_core.model.topology import IntArray

TOLERANCE = 1e-9
"""Ranks, which add up to at most 1, are iterated until none moves by more."""


@dataclass(frozen=True)
class GrcSettings:
    """``damping``: the weight of the neighbourhood, ``d`` above; of the two values that implementations use, 0.85 and
    0.95, the one that places more jobs on the benchmark's networks. ``shared``: whether tasks may share a node."""

    damping: float = 0.95
    shared: bool = False

    def __post_init__(self) -> None:
        within(self, 0.0, 0.999, "damping")


def ranks(capacity: FloatArray, src: IntArray, dst: IntArray, bandwidth: FloatArray, damping: float) -> FloatArray:
    """(vertices,): the GRC vector of a graph. ``capacity``: per vertex, adding up to 1; the edges as three arrays,
    each counted both ways."""
    count = len(capacity)
    ends, others, width = np.concatenate([src, dst]), np.concatenate([dst, src]), np.concatenate([bandwidth, bandwidth])
    total = np.bincount(others, width, count)[others]
    share = np.divide(width, total, out=np.zeros_like(width), where=total > 0)
    rank = capacity
    while True:
        following = (1.0 - damping) * capacity + damping * np.bincount(ends, share * rank[others], count)
        if float(np.abs(following - rank).max()) <= TOLERANCE:
            return following
        rank = following


def node_ranks(problem: Problem, used: FloatArray, damping: float) -> FloatArray:
    """(nodes,): ranks by free capacity, given ``used`` (resources, nodes)."""
    cluster, topology = problem.cluster, problem.cluster.topology
    free = np.maximum(cluster.node_capacity - used, 0.0)
    links = cluster.bandwidth_free[: len(topology.link_src)]
    return ranks(_shares(problem, free), topology.link_src, topology.link_dst, links, damping)


def task_ranks(problem: Problem, damping: float) -> FloatArray:
    """(tasks,): ranks by demand."""
    between = (problem.flow_src >= 0) & (problem.flow_dst >= 0)
    src, dst = problem.flow_src[between], problem.flow_dst[between]
    return ranks(_shares(problem, problem.demand.T), src, dst, problem.flow_min[between], damping)


def _shares(problem: Problem, amounts: FloatArray) -> FloatArray:
    """(columns,): each column's share of all ``amounts`` (resources, columns), averaged over what the job asks for."""
    asked = problem.demand.sum(axis=0) > 0
    total = amounts.sum(axis=1, keepdims=True)
    shares = np.divide(amounts, total, out=np.zeros_like(amounts), where=total > 0)
    return np.asarray(shares[asked].mean(axis=0)) if asked.any() else np.zeros(amounts.shape[1])


def placer(settings: GrcSettings) -> Placer:
    """The placement rule with these settings."""

    def large_to_large(problem: Problem, rng: np.random.Generator) -> Placement:
        order = np.argsort(-task_ranks(problem, settings.damping), kind="stable").tolist()
        if settings.shared:
            return place(problem, order, lambda view: node_ranks(problem, view.used, settings.damping))
        fixed = node_ranks(problem, problem.cluster.node_used, settings.damping)
        return place(problem, order, lambda view: fixed, _is_empty)

    return large_to_large


def _is_empty(view: View) -> BoolArray:
    return np.asarray(view.chosen == 0)


GRC = Baseline("grc", "ranks by global resource capacity, a node per task", placer(GrcSettings()))
GRC_SHARED = Baseline("grc-shared", "ranks by global resource capacity, nodes shared", placer(GrcSettings(shared=True)))
