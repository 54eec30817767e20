"""Which nodes of a large cluster a decision looks at closely.

Up to ``ALL`` nodes with capacity, all of them: the set does not change with the load, so what is known of its paths
stays known. Beyond that a few regions of near nodes with room for the job's tasks and bandwidth between them: on a
large network a job is served best where its tasks are close to each other, and the load is balanced best where they go
to nodes with less of it. Regions lie around the nodes that flows name, around those that the pickiest task may use, and
where there is most to gain; every task finds enough nodes among them that others cannot take all of its places.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ces_core.problem import FloatArray, Problem
from ces_core.topology import IntArray, Topology

ALL = 100
REGIONS = 2
REGION_SIZE = 30
"""Nodes of a region; more where the job has more tasks, up to ``ALL``."""
POOL = 2
"""A region is chosen from so many times its size of near nodes."""
CENTRES = 20
"""So many centres are looked at, at most, for each region."""
OWN = 4
"""So many nodes more than there are tasks before it each task finds among the candidates, if it can use as many."""
ENOUGH_TASKS = 4.0
"""Room for more tasks than this on one node counts no further."""
NOISE = 0.05
"""By how much the seed changes what a centre is worth."""


def candidates(problem: Problem, seed: int = 0) -> IntArray:
    """Indices of nodes, ascending. Every task that fits somewhere has a node among them where it fits alone."""
    cluster, homes = problem.cluster, problem.homes
    few = all_if_few(problem)
    if few is not None:
        return few
    size = min(max(REGION_SIZE, len(problem.tasks)), ALL)
    appeal = _appeal(problem)
    noise = 1.0 + NOISE * np.random.default_rng(seed).random(len(appeal))
    worth = _ball(problem, appeal) * noise
    chosen: set[int] = set()
    for end in sorted({-1 - int(end) for ends in (problem.flow_src, problem.flow_dst) for end in ends if end < 0}):
        chosen.update(_region(cluster.topology, end, appeal, size))
    fitting = homes.sum(axis=1)
    pickiest = int(np.argmin(np.where(fitting > 0, fitting, len(appeal) + 1)))
    if fitting[pickiest] < fitting.max() / 2:
        worth = worth * homes[pickiest]
    regions = 0
    for centre in _best(worth, CENTRES * REGIONS):
        if regions == REGIONS:
            break
        if centre not in chosen:
            chosen.update(_region(cluster.topology, centre, appeal, size))
            regions += 1
    hops: NDArray[np.float64] | None = None
    for before, t in enumerate(np.argsort(fitting, kind="stable").tolist()):
        have = np.array(sorted(chosen), dtype=np.int64)
        lacking = min(OWN + before, int(fitting[t])) - int(homes[t, have].sum())
        if lacking <= 0:
            continue
        if hops is None:
            away = problem.routes.hops_from(int(have[np.argmax(worth[have])]))
            hops = np.where(away < 0, np.inf, away)
        more = homes[t].copy()
        more[have] = False
        own = np.flatnonzero(more)
        chosen.update(own[np.lexsort((-appeal[own], hops[own]))[:lacking]].tolist())
    return np.array(sorted(chosen), dtype=np.int64)


def all_if_few(problem: Problem) -> IntArray | None:
    """All nodes with capacity, where these are no more than ``ALL``."""
    capable = np.flatnonzero((problem.cluster.node_capacity > 0).any(axis=0))
    return capable if len(capable) <= ALL else None


def _appeal(problem: Problem) -> FloatArray:
    """Per node: about how many of the tasks it has room for, at most ``ENOUGH_TASKS``; less where it is busier than
    others."""
    cluster = problem.cluster
    mean = np.maximum(problem.demand.mean(axis=0), 1e-300)[:, None]
    wanted = problem.demand.max(axis=0) > 0
    nodes = cluster.node_free.shape[1]
    room = (cluster.node_free[wanted] / mean[wanted]).min(axis=0) if wanted.any() else np.ones(nodes)
    capacity = cluster.node_capacity[:2]
    use = np.divide(cluster.node_used[:2], capacity, out=np.ones_like(capacity), where=capacity > 0).mean(axis=0)
    calm = np.maximum(1.0 - use, 0.0) * (1.0 - 0.5 * np.minimum(use, 1.0))
    appeal: FloatArray = np.minimum(room, ENOUGH_TASKS) * calm * problem.homes.any(axis=0)
    return appeal


def _ball(problem: Problem, appeal: FloatArray) -> FloatArray:
    """Per node: what it and its neighbours offer, as far as the links between them have room for flows both ways."""
    topology, cluster = problem.cluster.topology, problem.cluster
    if not len(topology.link_src) or not len(problem.flows):
        return appeal
    typical = max(float(problem.flow_max.mean()), 1e-300)
    width = np.minimum(cluster.bandwidth_free[: len(topology.link_src)] / typical, 1.0)
    src, dst = topology.link_src, topology.link_dst
    near = np.bincount(src, width * appeal[dst], len(appeal)) + np.bincount(dst, width * appeal[src], len(appeal))
    ball: FloatArray = appeal * (1.0 + 0.25 * near)
    return ball


def _best(worth: FloatArray, count: int) -> list[int]:
    """The nodes that are worth most, best first; none that is worth nothing."""
    best = np.argpartition(-worth, count)[:count] if count < len(worth) else np.arange(len(worth))
    best = best[worth[best] > 0]
    order: list[int] = best[np.lexsort((best, -worth[best]))].tolist()
    return order


def _region(topology: Topology, centre: int, appeal: FloatArray, size: int) -> list[int]:
    """The centre and the most appealing of the nearest nodes with room, ring by ring."""
    near: list[int] = []
    seen = {centre}
    ring = [centre]
    while ring and len(near) < POOL * size:
        reached = {int(topology.link_dst[link]) for node in ring for link in topology.links_from[node]} - seen
        seen |= reached
        ring = sorted(reached)
        near.extend(sorted((node for node in ring if appeal[node] > 0), key=lambda node: (-appeal[node], node)))
    near = near[: POOL * size]
    return [centre, *sorted(near, key=lambda node: (-appeal[node], node))[: size - 1]]
