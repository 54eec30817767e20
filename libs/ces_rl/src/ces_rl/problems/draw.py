"""Random problems of the regimes, drawn in compiled code: the distributions of
``ces_core.model.generate.random_instance``.

The draws are its own: `random_instance` draws one instance at a time from another generator and rounds, and what was
trained with either could not be trained again if they shared one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.model.generate import REGIMES
from ces_core.model.problem import SLACK, FloatArray
from ces_core.model.topologies.shapes import LINK_PROBABILITY
from ces_core.model.topology import IntArray
from ces_core.network.hops import Neighbours, spread
from ces_core.network.path_table import MAX_TIES
from ces_core.network.shortest_paths import roomy, shortest_walks
from ces_core.placement.view import ProblemView, linked
from ces_core.search.annealing import random_of, uniform
from ces_rl.problems.pool import Pool, lengths, sizes_of, write

FLOW_PROBABILITY = 0.4


class Kinds(NamedTuple):
    """What is drawn: regimes by their odds, sizes evenly from a range."""

    scales: FloatArray  # (K,) factors on link capacities
    odds: FloatArray  # (K,) cumulative, the last is 1
    nodes: IntArray  # (2,) least, most
    tasks: IntArray  # (2,)


def kinds(odds: dict[str, float], nodes: tuple[int, int] = (10, 10), tasks: tuple[int, int] = (3, 8)) -> Kinds:
    """``odds``: regime -> weight. Raises KeyError for an unknown regime."""
    weights = np.array(list(odds.values()), dtype=np.float64)
    return Kinds(
        scales=np.array([REGIMES[name] for name in odds]),
        odds=np.cumsum(weights / weights.sum()),
        nodes=np.array(nodes, dtype=np.int64),
        tasks=np.array(tasks, dtype=np.int64),
    )


def new_random(seed: int) -> IntArray:
    """The state of a generator."""
    return np.array([random_of(seed)], dtype=np.int64)


@compiled
def draw(random: IntArray, kinds: Kinds, count: int) -> Pool:
    """``count`` problems."""
    sizes = np.zeros((count, 7), dtype=np.int64)
    at = np.zeros((count, 3), dtype=np.int64)
    floats = np.zeros(1024 * count)
    ints = np.zeros(1024 * count, dtype=np.int64)
    bools = np.zeros(64 * count, dtype=np.bool_)
    a = b = c = 0
    for i in range(count):
        kind = 0
        choice = uniform(random)
        while kind + 1 < len(kinds.odds) and choice > kinds.odds[kind]:
            kind += 1
        nodes = _whole(random, kinds.nodes[0], kinds.nodes[1])
        tasks = _whole(random, kinds.tasks[0], kinds.tasks[1])
        view = draw_one(random, kinds.scales[kind], nodes, tasks)
        sizes[i] = sizes_of(view)
        at[i, 0], at[i, 1], at[i, 2] = a, b, c
        more = lengths(sizes[i])
        a, b, c = a + more[0], b + more[1], c + more[2]
        floats, ints, bools = roomy(floats, a), roomy(ints, b), roomy(bools, c)
        write(Pool(sizes, at, floats, ints, bools), i, view)
    return Pool(sizes, at, floats, ints, bools)


@compiled
def draw_one(random: IntArray, scale: float, nodes: int, tasks: int) -> ProblemView:
    """One problem of a cluster of ``nodes`` with link capacities times ``scale``, and a job of ``tasks``."""
    capacity = np.zeros((3, nodes))
    used = np.zeros((3, nodes))
    for n in range(nodes):
        for k in range(2):
            capacity[k, n] = _between(random, 50.0, 100.0)
            used[k, n] = capacity[k, n] * _between(random, 0.1, 0.5)
    wired = _graph(random, nodes, LINK_PROBABILITY)
    links = int(wired.sum())
    speed = np.zeros(links)
    for i in range(links):
        speed[i] = _between(random, 100.0, 1000.0) * scale
    demand = np.zeros((tasks, 3))
    for t in range(tasks):
        for k in range(2):
            demand[t, k] = _between(random, 10.0, 50.0)
    talk = _graph(random, tasks, FLOW_PROBABILITY)
    flows = int(talk.sum()) // 2
    src, dst = np.zeros(flows, dtype=np.int64), np.zeros(flows, dtype=np.int64)
    low, high = np.zeros(flows), np.zeros(flows)
    f = 0
    for i in range(tasks):
        for j in range(i + 1, tasks):
            if talk[i, j]:
                src[f], dst[f] = i, j
                low[f], high[f] = _between(random, 10.0, 50.0), _between(random, 50.0, 100.0)
                f += 1
    flow_src, flow_dst, flows_first, flows_of = linked(src, dst, np.arange(nodes), tasks)
    pair_first, path_first, path_resource, path_times = _paths(wired, links)
    use = used[:2] / capacity[:2]
    free = np.maximum(capacity - used, 0.0) + SLACK * capacity
    fits = np.zeros((tasks, nodes), dtype=np.bool_)
    for t in range(tasks):
        for n in range(nodes):
            fits[t, n] = (demand[t, 0] <= free[0, n]) and (demand[t, 1] <= free[1, n])
    return ProblemView(
        nodes=np.arange(nodes),
        free=free,
        use=use,
        inverse=1.0 / capacity[:2],
        node_count=np.full(2, float(nodes)),
        node_sum=use.sum(axis=1),
        node_squares=(use * use).sum(axis=1),
        demand=demand,
        fits=fits,
        flow_src=flow_src,
        flow_dst=flow_dst,
        low=low,
        high=high,
        flows_first=flows_first,
        flows_of=flows_of,
        pair_first=pair_first,
        path_first=path_first,
        path_resource=path_resource,
        path_times=path_times,
        residual=speed + SLACK * speed,
        link_use=np.zeros(links),
        link_inverse=1.0 / speed,
        link_count=float(max(links, 1)),
        link_sum=0.0,
        link_squares=0.0,
        weights=np.full(3, 1.0 / 3.0),
        worth=np.zeros(0),
        cards=np.zeros((0, 0)),
        per_card=0.0,
    )


@compiled
def _between(random: IntArray, low: float, high: float) -> float:
    return low + (high - low) * uniform(random)


@compiled
def _whole(random: IntArray, least: int, most: int) -> int:
    return least + int(uniform(random) * (most + 1 - least))


@compiled
def _graph(random: IntArray, size: int, probability: float) -> IntArray:
    """(size, size) 1 where two are joined; pieces are joined at random, each to the next."""
    joined = np.zeros((size, size), dtype=np.int64)
    piece = np.arange(size)
    for i in range(size):
        for j in range(i + 1, size):
            if uniform(random) < probability:
                joined[i, j] = joined[j, i] = 1
                one, other = min(piece[i], piece[j]), max(piece[i], piece[j])
                for n in range(size):
                    if piece[n] == other:
                        piece[n] = one
    before = -1
    for first in range(size):
        if piece[first] != first:  # a piece is named after its first member
            continue
        if before >= 0:
            i, j = _member(random, piece, before), _member(random, piece, first)
            joined[i, j] = joined[j, i] = 1
        before = first
    return joined


@compiled
def _member(random: IntArray, piece: IntArray, name: int) -> int:
    count = 0
    for n in range(len(piece)):
        count += piece[n] == name
    wanted = int(uniform(random) * count)
    for n in range(len(piece)):
        if piece[n] == name:
            if wanted == 0:
                return n
            wanted -= 1
    return -1


@compiled
def _paths(wired: IntArray, links: int) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """The hop-shortest paths between all pairs; links are numbered by their ends."""
    nodes = len(wired)
    first = np.zeros(nodes + 1, dtype=np.int64)
    node = np.zeros(links, dtype=np.int32)
    link = np.zeros(links, dtype=np.int32)
    number = np.zeros((nodes, nodes), dtype=np.int32)
    at = 0
    for a in range(nodes):
        for b in range(nodes):
            if wired[a, b]:
                node[at], link[at], number[a, b] = b, at, at
                at += 1
        first[a + 1] = at
    back = np.zeros(links, dtype=np.int32)  # wires lead both ways, so only the links' numbers differ
    for a in range(nodes):
        for i in range(first[a], first[a + 1]):
            back[i] = number[node[i], a]
    hops = np.empty((nodes, nodes), dtype=np.int16)
    ends = np.arange(nodes)
    spread(first, node, ends, hops)
    src = np.repeat(ends, nodes)
    row_of = np.zeros(nodes * nodes, dtype=np.int64)
    for p in range(nodes * nodes):
        row_of[p] = p % nodes
    medium = np.full(links, -1, dtype=np.int64)
    out, into = Neighbours(first, node, link), Neighbours(first, node, back)
    found = shortest_walks(out, into, medium, hops, ends, src, row_of, MAX_TIES)
    return found[0], found[1], found[2], found[3]
