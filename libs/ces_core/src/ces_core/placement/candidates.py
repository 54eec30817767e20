"""Candidate nodes: the subset of a large cluster on which a decision is made.

With up to ``ALL`` nodes that have capacity, all of them are candidates: the set does not change with the load, so
cached paths stay valid. In larger clusters the candidates are a few regions of neighbouring nodes that have free
capacity for the tasks and bandwidth between them, because jobs do best on nodes close together and balance does best on
lightly loaded ones. Regions are grown around nodes named by flows, around nodes allowed for the most restricted task,
and around the most promising centres. Every task gets enough candidates of its own that other tasks cannot take them
all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled
from ces_core.model.problem import FloatArray, Problem
from ces_core.model.topology import IntArray
from ces_core.network.cache import network_of, paths_for

ALL = 100
CENTRES = 20
"""Centres examined per region, at most."""
OWN = 4
"""Each task gets this many candidates plus one for every task before it, if that many nodes fit it."""
ENOUGH_TASKS = 4.0
"""Free capacity for more tasks than this on one node counts no further."""
NOISE = 0.05
"""Relative noise that the seed adds to the value of a centre."""


@dataclass(frozen=True)
class Rule:
    """How regions of a large cluster are chosen."""

    regions: int
    size: int
    """Nodes per region; raised to the number of tasks where that is larger, up to ``ALL``."""
    pool: int
    """A region is chosen from this many times its size of nearby nodes."""
    judge: Callable[[Problem], tuple[FloatArray, FloatArray]]
    """Returns two non-negative values per node: as the centre of a region and as a member of one. Zero where no task
    fits."""


def candidates(problem: Problem, seed: int = 0, rule: Rule | None = None) -> IntArray:
    """Indices of the candidate nodes, ascending. Every task that fits on some node alone also fits on a candidate."""
    rule = BY_HAND if rule is None else rule
    cluster, homes = problem.cluster, problem.homes
    few = all_if_few(problem)
    if few is not None:
        return few
    size = min(max(rule.size, len(problem.tasks)), ALL)
    worth, appeal = rule.judge(problem)
    worth = worth * (1.0 + NOISE * np.random.default_rng(seed).random(len(appeal)))
    ahead = network_of(cluster.topology).out[:2]
    chosen: set[int] = set()
    for end in sorted({-1 - int(end) for ends in (problem.flow_src, problem.flow_dst) for end in ends if end < 0}):
        chosen.update(_region(*ahead, end, appeal, size, rule.pool))
    fitting = homes.sum(axis=1)
    pickiest = int(np.argmin(np.where(fitting > 0, fitting, len(appeal) + 1)))
    if fitting[pickiest] < fitting.max() / 2:
        worth = worth * homes[pickiest]
    regions = 0
    for centre in _best(worth, CENTRES * rule.regions):
        if regions == rule.regions:
            break
        if centre not in chosen:
            chosen.update(_region(*ahead, centre, appeal, size, rule.pool))
            regions += 1
    have = np.array(sorted(chosen), dtype=np.int64)
    lacking = np.minimum(OWN + np.arange(len(fitting)), np.sort(fitting))
    hops: NDArray[np.float64] | None = None
    for t, wanted in zip(np.argsort(fitting, kind="stable").tolist(), lacking.tolist(), strict=True):
        missing = wanted - int(np.count_nonzero(homes[t, have]))
        if missing <= 0:
            continue
        if hops is None:
            away = paths_for(problem).hops_from(int(have[np.argmax(worth[have])]))
            hops = np.where(away < 0, np.inf, away)
        more = homes[t].copy()
        more[have] = False
        own = np.flatnonzero(more)
        have = np.union1d(have, own[np.lexsort((-appeal[own], hops[own]))[:missing]])
    return have


def all_if_few(problem: Problem) -> IntArray | None:
    """All nodes with capacity if there are at most ``ALL`` of them, else None."""
    capable = np.flatnonzero((problem.cluster.node_capacity > 0).any(axis=0))
    return capable if len(capable) <= ALL else None


def by_hand(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """The values of nodes by hand-written rules."""
    appeal = _appeal(problem)
    return _ball(problem, appeal), appeal


BY_HAND = Rule(regions=2, size=30, pool=2, judge=by_hand)


def _appeal(problem: Problem) -> FloatArray:
    """Per node: roughly how many tasks fit, at most ``ENOUGH_TASKS``, discounted by its utilisation."""
    cluster = problem.cluster
    mean = np.maximum(problem.demand.mean(axis=0), 1e-300)[:, None]
    wanted = problem.demand.max(axis=0) > 0
    nodes = cluster.node_free.shape[1]
    residual = (cluster.node_free[wanted] / mean[wanted]).min(axis=0) if wanted.any() else np.ones(nodes)
    capacity = cluster.node_capacity[:2]
    use = np.divide(cluster.node_used[:2], capacity, out=np.ones_like(capacity), where=capacity > 0).mean(axis=0)
    calm = np.maximum(1.0 - use, 0.0) * (1.0 - 0.5 * np.minimum(use, 1.0))
    appeal: FloatArray = np.minimum(residual, ENOUGH_TASKS) * calm * problem.homes.any(axis=0)
    return appeal


def _ball(problem: Problem, appeal: FloatArray) -> FloatArray:
    """Per node: its own appeal plus that of its neighbours, as far as the links between them can carry flows."""
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
    """The nodes of highest value, best first, without those of value zero."""
    best = np.argpartition(-worth, count)[:count] if count < len(worth) else np.arange(len(worth))
    best = best[worth[best] > 0]
    order: list[int] = best[np.lexsort((best, -worth[best]))].tolist()
    return order


@compiled
def _region(
    first: IntArray, node: NDArray[np.int32], centre: int, appeal: FloatArray, size: int, pool: int
) -> IntArray:
    """The centre and the most appealing of the nearest nodes with free capacity, found by breadth-first search.
    ``first`` and ``node`` list each node's neighbours over outgoing links."""
    nodes = len(appeal)
    seen = np.zeros(nodes, dtype=np.bool_)
    seen[centre] = True
    ring = np.empty(nodes, dtype=np.int64)
    ring[0] = centre
    begin, end = 0, 1
    near = np.empty(nodes, dtype=np.int64)
    count = 0
    while begin < end and count < pool * size:
        reached = end
        for i in range(begin, end):
            for c in range(first[ring[i]], first[ring[i] + 1]):
                if not seen[node[c]]:
                    seen[node[c]] = True
                    ring[reached] = node[c]
                    reached += 1
        begin, end = end, reached
        found = np.sort(ring[begin:end])
        found = found[appeal[found] > 0.0]
        found = found[np.argsort(-appeal[found], kind="mergesort")]
        near[count : count + len(found)] = found
        count += len(found)
    near = np.sort(near[: min(count, pool * size)])
    best = near[np.argsort(-appeal[near], kind="mergesort")][: size - 1]
    region = np.empty(len(best) + 1, dtype=np.int64)
    region[0] = centre
    region[1:] = best
    return region
