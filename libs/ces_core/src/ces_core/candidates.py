"""Which nodes of a large cluster a decision looks at closely.

Up to ``ALL`` nodes with capacity, all of them: the set does not change with the load, so what is known of its paths
stays known. Beyond that a few regions of near nodes with room for the job's tasks and bandwidth between them: on a
large network a job is served best where its tasks are close to each other, and one node more or less in a thousand
changes the load imbalance little.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ces_core.problem import SLACK, FloatArray, Problem
from ces_core.topology import IntArray, Topology

ALL = 100
REGIONS = 3
REGION_SIZE = 20
OWN = 4
"""So many nodes are added for each task that may not run everywhere."""
ENOUGH_TASKS = 4.0
"""Room for more tasks than this on one node counts no further."""


def candidates(problem: Problem, seed: int = 0) -> IntArray:
    """Indices of nodes, ascending. Every task that fits somewhere has a node among them where it fits alone."""
    cluster = problem.cluster
    capable = np.flatnonzero((cluster.node_capacity > 0).any(axis=0))
    if len(capable) <= ALL:
        return capable
    free = cluster.node_free + SLACK * cluster.node_capacity
    fits = problem.allowed & (problem.demand[:, :, None] <= free[None]).all(axis=1)
    appeal = _appeal(problem, fits)
    chosen: set[int] = set()
    centres = _ball(problem, appeal)
    for end in sorted({-1 - int(end) for ends in (problem.flow_src, problem.flow_dst) for end in ends if end < 0}):
        chosen.update(_region(cluster.topology, end, appeal))
    rng = np.random.default_rng(seed)
    noise = 1.0 + 0.05 * rng.random(len(centres))
    order = np.argsort(-centres * noise, kind="stable")
    regions = 0
    for centre in order[: 20 * REGIONS].tolist():
        if regions == REGIONS:
            break
        if centre not in chosen:
            chosen.update(_region(cluster.topology, centre, appeal))
            regions += 1
    everywhere = fits.sum(axis=1).max()
    for t in range(len(problem.tasks)):
        row = fits[t]
        if row.any() and (row.sum() < everywhere or not row[sorted(chosen)].any()):
            own = np.flatnonzero(row)
            chosen.update(own[np.argsort(-appeal[own], kind="stable")[:OWN]].tolist())
    return np.array(sorted(chosen), dtype=np.int64)


def _appeal(problem: Problem, fits: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> FloatArray:
    """Per node: about how many of the tasks it has room for, at most ``ENOUGH_TASKS``; less where it is busier than
    others."""
    cluster = problem.cluster
    mean = np.maximum(problem.demand.mean(axis=0), 1e-300)[:, None]
    wanted = problem.demand.max(axis=0) > 0
    room = (cluster.node_free[wanted] / mean[wanted]).min(axis=0) if wanted.any() else np.ones(fits.shape[1])
    capacity = cluster.node_capacity[:2]
    use = np.divide(cluster.node_used[:2], capacity, out=np.ones_like(capacity), where=capacity > 0).mean(axis=0)
    appeal: FloatArray = np.minimum(room, ENOUGH_TASKS) * (1.0 - 0.5 * use) * fits.any(axis=0)
    return appeal


def _ball(problem: Problem, appeal: FloatArray) -> FloatArray:
    """Per node: what it and its neighbours offer, as far as the links between them have room for flows both ways."""
    topology, cluster = problem.cluster.topology, problem.cluster
    if not len(topology.link_src) or not len(problem.flows):
        return appeal.copy()
    typical = max(float(problem.flow_max.mean()), 1e-300)
    width = np.minimum(cluster.bandwidth_free[: len(topology.link_src)] / typical, 1.0)
    reach = csr_array((width, (topology.link_src, topology.link_dst)), shape=(len(appeal), len(appeal)))
    near = reach @ appeal + reach.T @ appeal
    ball: FloatArray = appeal * (1.0 + 0.25 * near)
    return ball


def _region(topology: Topology, centre: int, appeal: FloatArray) -> list[int]:
    """The centre and the nearest nodes with room, ring by ring, the most appealing of the last ring."""
    region: list[int] = [centre]
    seen = {centre}
    ring = [centre]
    while ring and len(region) < REGION_SIZE:
        reached = {int(topology.link_dst[link]) for node in ring for link in topology.links_from[node]} - seen
        seen |= reached
        ring = sorted(reached)
        useful = sorted((node for node in ring if appeal[node] > 0), key=lambda node: (-appeal[node], node))
        region.extend(useful[: REGION_SIZE - len(region)])
    return region
