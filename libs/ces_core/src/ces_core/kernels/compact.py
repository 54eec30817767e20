"""A problem as flat arrays over candidate nodes: what compiled code works on.

Nodes are candidates here, numbered 0..C-1; links and media are the *resources* of :class:`ces_core.paths.Path`,
numbered as everywhere (links, then media). What the rest of the cluster contributes to the spreads is kept as sums, so
that a decision among few candidates costs nothing for the nodes and links that it does not touch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.jit import compiled
from ces_core.paths import Path
from ces_core.problem import SLACK, FloatArray, Problem
from ces_core.topology import IntArray


class Compact(NamedTuple):
    """T tasks, F flows, C candidates, R resources. See the module.

    ``std(U)`` of CPU (row 0) and memory (row 1) follows from ``node_count``, ``node_sum`` and ``node_squares`` (over
    all nodes of the cluster, before the job) and the changes on candidates; that of the links likewise.
    """

    nodes: IntArray  # (C,) the candidates' indices in the cluster
    free: FloatArray  # (3, C) CPU, memory, GPU; with room for rounding
    use: FloatArray  # (2, C) utilisation that counts before the job (zero for the basis "job")
    inverse: FloatArray  # (2, C) 1 / capacity, 0 where there is none
    node_count: FloatArray  # (2,) at least 1
    node_sum: FloatArray  # (2,)
    node_squares: FloatArray  # (2,)
    demand: FloatArray  # (T, 3)
    fits: NDArray[np.bool_]  # (T, C) allowed there, and fits there alone
    flow_src: IntArray  # (F,) a task, or -1 - c for candidate c itself
    flow_dst: IntArray  # (F,)
    low: FloatArray  # (F,) minimum
    high: FloatArray  # (F,) maximum
    flows_first: IntArray  # (T + 1,) flows of task t: flows_of[flows_first[t] : flows_first[t + 1]]
    flows_of: IntArray
    pair_first: IntArray  # these four: see FlatPaths
    path_first: IntArray
    path_resource: IntArray
    path_times: FloatArray
    room: FloatArray  # (R,) free bandwidth, with room for rounding
    link_use: FloatArray  # (R,) utilisation that counts before the job; 0 for media
    link_inverse: FloatArray  # (R,) 1 / capacity; 0 for media and for links without capacity
    link_count: float  # at least 1
    link_sum: float
    link_squares: float
    weights: FloatArray  # (3,) of CPU, memory and bandwidth in L
    worth: FloatArray  # of what is left behind, see ces_core.kernels.worth; (0,): nothing


def compact(problem: Problem, candidates: IntArray | None = None) -> Compact:
    """The problem over ``candidates`` (indices in the cluster, ascending; all nodes that some task may use where
    None). Raises ValueError for others.

    Nodes that flows name as their ends are always among the candidates, whether or not a task may run there.
    """
    cluster = problem.cluster
    if candidates is None:
        candidates = np.flatnonzero(problem.homes.any(axis=0))
    ends = np.concatenate([problem.flow_src, problem.flow_dst])
    fixed = -1 - ends[ends < 0]
    nodes = np.union1d(candidates, fixed).astype(np.int64) if len(fixed) else candidates.astype(np.int64)
    measured = _measured(
        cluster.node_capacity,
        cluster.node_used,
        cluster.node_free,
        cluster.link_capacity,
        cluster.link_used,
        cluster.bandwidth_capacity,
        cluster.bandwidth_free,
        problem.homes,
        candidates,
        nodes,
        problem.basis == "system",
    )
    linked = _linked(problem.flow_src, problem.flow_dst, nodes, len(problem.tasks))
    paths = problem.routes.flat(nodes)
    return Compact(
        nodes=nodes,
        demand=np.ascontiguousarray(problem.demand),
        low=problem.flow_min,
        high=problem.flow_max,
        pair_first=paths.pair_first,
        path_first=paths.path_first,
        path_resource=paths.resource,
        path_times=paths.times,
        weights=np.array(problem.weights),
        worth=np.zeros(0),
        **measured._asdict(),
        **linked._asdict(),
    )


def path_of(problem: Problem, view: Compact, src: int, dst: int, path: int) -> Path:
    """The path that compiled code calls ``path``, which leads from candidate ``src`` to candidate ``dst``."""
    first = int(view.pair_first[src * len(view.nodes) + dst])
    return problem.routes.between(int(view.nodes[src]), int(view.nodes[dst]))[path - first]


class _Measured(NamedTuple):
    """What :class:`Compact` says of nodes and links."""

    free: FloatArray
    use: FloatArray
    inverse: FloatArray
    node_count: FloatArray
    node_sum: FloatArray
    node_squares: FloatArray
    fits: NDArray[np.bool_]
    room: FloatArray
    link_use: FloatArray
    link_inverse: FloatArray
    link_count: float
    link_sum: float
    link_squares: float


class _Linked(NamedTuple):
    """What :class:`Compact` says of flows and their ends."""

    flow_src: IntArray
    flow_dst: IntArray
    flows_first: IntArray
    flows_of: IntArray


@compiled
def _measured(
    node_capacity: FloatArray,
    node_used: FloatArray,
    node_free: FloatArray,
    link_capacity: FloatArray,
    link_used: FloatArray,
    bandwidth_capacity: FloatArray,
    bandwidth_free: FloatArray,
    homes: NDArray[np.bool_],
    candidates: IntArray,
    nodes: IntArray,
    system: bool,
) -> _Measured:
    everywhere, count, tasks = node_capacity.shape[1], len(nodes), len(homes)
    for c in range(1, len(candidates)):
        if candidates[c] <= candidates[c - 1]:
            raise ValueError("candidates must be ascending")
    if count and (nodes[0] < 0 or nodes[count - 1] >= everywhere):
        raise ValueError("candidates must be nodes of the cluster")
    free, use, inverse = np.zeros((3, count)), np.zeros((2, count)), np.zeros((2, count))
    node_count, node_sum, node_squares = np.ones(2), np.zeros(2), np.zeros(2)
    for row in range(2):
        there = 0.0
        for n in range(everywhere):
            capacity = node_capacity[row, n]
            if capacity > 0.0:
                there += 1.0
                used = node_used[row, n] / capacity if system else 0.0
                node_sum[row] += used
                node_squares[row] += used * used
        node_count[row] = max(there, 1.0)
    fits = np.zeros((tasks, count), dtype=np.bool_)
    at = 0
    for c in range(count):
        n = nodes[c]
        for row in range(3):
            free[row, c] = node_free[row, n] + SLACK * node_capacity[row, n]
        for row in range(2):
            if node_capacity[row, n] > 0.0:
                inverse[row, c] = 1.0 / node_capacity[row, n]
                use[row, c] = node_used[row, n] / node_capacity[row, n] if system else 0.0
        while at < len(candidates) and candidates[at] < n:
            at += 1
        if at < len(candidates) and candidates[at] == n:
            for t in range(tasks):
                fits[t, c] = homes[t, n]
    resources, links = len(bandwidth_free), len(link_capacity)
    room, link_use, link_inverse = np.zeros(resources), np.zeros(resources), np.zeros(resources)
    link_count, link_sum, link_squares = 0.0, 0.0, 0.0
    for r in range(resources):
        # None where more is in use than there is: nobody may add to that, not even what rounding would forgive.
        if bandwidth_free[r] > 0.0:
            room[r] = bandwidth_free[r] + SLACK * bandwidth_capacity[r]
        if r < links and link_capacity[r] > 0.0:
            link_inverse[r] = 1.0 / link_capacity[r]
            link_use[r] = link_used[r] / link_capacity[r] if system else 0.0
            link_count += 1.0
            link_sum += link_use[r]
            link_squares += link_use[r] * link_use[r]
    return _Measured(
        free,
        use,
        inverse,
        node_count,
        node_sum,
        node_squares,
        fits,
        room,
        link_use,
        link_inverse,
        max(link_count, 1.0),
        link_sum,
        link_squares,
    )


@compiled
def _linked(flow_src: IntArray, flow_dst: IntArray, nodes: IntArray, tasks: int) -> _Linked:
    """Ends that are nodes become candidates; each task's flows: those that begin at it, then those that end there."""
    flows = len(flow_src)
    ends = np.zeros((2, flows), dtype=np.int64)
    first = np.zeros(tasks + 1, dtype=np.int64)
    for f in range(flows):
        ends[0, f], ends[1, f] = flow_src[f], flow_dst[f]
        for side in range(2):
            end = ends[side, f]
            if end < 0:
                ends[side, f] = -1 - np.searchsorted(nodes, -1 - end)
            else:
                first[end + 1] += 1
    for t in range(tasks):
        first[t + 1] += first[t]
    flows_of = np.zeros(first[tasks], dtype=np.int64)
    filled = first[:tasks].copy()
    for side in range(2):
        for f in range(flows):
            end = ends[side, f]
            if end >= 0:
                flows_of[filled[end]] = f
                filled[end] += 1
    return _Linked(ends[0].copy(), ends[1].copy(), first, flows_of)
