"""A problem as flat arrays over candidate nodes, the input of compiled code.

Nodes are numbered 0..C-1 among the candidates; links and media are the *resources* of
:class:`ces_core.model.path.Path`, numbered as everywhere (links, then media). The rest of the cluster contributes to
the spreads only through sums, so untouched nodes and links cost nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.model.path import Path
from ces_core.model.problem import SLACK, BoolArray, FloatArray, Problem
from ces_core.model.topology import IntArray
from ces_core.network.cache import paths_for


class ProblemView(NamedTuple):
    """T tasks, F flows, C candidates, R resources; see the module.

    ``std(U)`` of CPU (row 0) and memory (row 1) follows from ``node_count``, ``node_sum`` and ``node_squares`` (over
    all nodes of the cluster, before the job) and the changes on candidates; likewise for links.
    """

    # Nodes and links.
    free: FloatArray  # (3, C) CPU, memory, GPU, with slack for rounding
    use: FloatArray  # (2, C) utilisation before the job (zero for the basis "job")
    inverse: FloatArray  # (2, C) 1 / capacity, 0 where there is none
    node_count: FloatArray  # (2,) at least 1
    node_sum: FloatArray  # (2,)
    node_squares: FloatArray  # (2,)
    fits: BoolArray  # (T, C) the task is allowed and fits alone
    residual: FloatArray  # (R,) free bandwidth, with slack for rounding
    link_use: FloatArray  # (R,) utilisation before the job; 0 for media
    link_inverse: FloatArray  # (R,) 1 / capacity; 0 for media and for links without capacity
    link_count: float  # at least 1
    link_sum: float
    link_squares: float
    # Flows and their ends.
    flow_src: IntArray  # (F,) a task, or -1 - c for candidate c itself
    flow_dst: IntArray  # (F,)
    flows_first: IntArray  # (T + 1,) flows of task t: flows_of[flows_first[t] : flows_first[t + 1]]
    flows_of: IntArray
    # The rest of the problem.
    nodes: IntArray  # (C,) the candidates' indices in the cluster
    demand: FloatArray  # (T, 3)
    low: FloatArray  # (F,) minimum
    high: FloatArray  # (F,) maximum
    pair_first: IntArray  # these four as in FlatPaths
    path_first: IntArray
    path_resource: IntArray
    path_times: FloatArray
    weights: FloatArray  # (3,) of CPU, memory and bandwidth in L
    worth: FloatArray  # tables of ces_core.placement.worth; (0,): none
    cards: FloatArray  # (C, steps) change in the value of a node's cards after so many; (0, 0): none
    per_card: float  # steps per GPU


def problem_view(problem: Problem, candidates: IntArray | None = None) -> ProblemView:
    """The problem over ``candidates`` (indices in the cluster, ascending; None: all nodes that some task may use).
    Raises ValueError for other indices.

    Nodes named as ends of flows are always included, whether or not a task may run there.
    """
    cluster = problem.cluster
    if candidates is None:
        candidates = np.flatnonzero(problem.homes.any(axis=0))
    ends = np.concatenate([problem.flow_src, problem.flow_dst])
    fixed = -1 - ends[ends < 0]
    nodes = np.union1d(candidates, fixed).astype(np.int64) if len(fixed) else candidates.astype(np.int64)
    capacities = cluster.node_capacity, cluster.node_used, cluster.node_free, cluster.link_capacity, cluster.link_used
    bandwidth = cluster.bandwidth_capacity, cluster.bandwidth_free
    measured = _measured(*capacities, *bandwidth, problem.homes, candidates, nodes, problem.basis == "system")
    flows = linked(problem.flow_src, problem.flow_dst, nodes, len(problem.tasks))
    rest = (nodes, np.ascontiguousarray(problem.demand), problem.flow_min, problem.flow_max)
    paths = paths_for(problem).flat(nodes)
    values = (np.array(problem.weights), np.zeros(0), np.zeros((0, 0)), 0.0)
    return ProblemView._make((*measured, *flows, *rest, *paths[:4], *values))  # in the order of the fields


def path_of(problem: Problem, view: ProblemView, src: int, dst: int, path: int) -> Path:
    """The path with number ``path`` in compiled code, leading from candidate ``src`` to candidate ``dst``."""
    first = int(view.pair_first[src * len(view.nodes) + dst])
    return paths_for(problem).between(int(view.nodes[src]), int(view.nodes[dst]))[path - first]


@compiled
def _measured(
    node_capacity: FloatArray,
    node_used: FloatArray,
    node_free: FloatArray,
    link_capacity: FloatArray,
    link_used: FloatArray,
    bandwidth_capacity: FloatArray,
    bandwidth_free: FloatArray,
    homes: BoolArray,
    candidates: IntArray,
    nodes: IntArray,
    system: bool,
) -> tuple[Any, ...]:
    """The fields of :class:`ProblemView` about nodes and links, from ``free`` to ``link_squares``."""
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
    residual, link_use, link_inverse = np.zeros(resources), np.zeros(resources), np.zeros(resources)
    link_count, link_sum, link_squares = 0.0, 0.0, 0.0
    for r in range(resources):
        # No slack where a resource is overcommitted: nothing may be added to it, not even a rounding error.
        if bandwidth_free[r] > 0.0:
            residual[r] = bandwidth_free[r] + SLACK * bandwidth_capacity[r]
        if r < links and link_capacity[r] > 0.0:
            link_inverse[r] = 1.0 / link_capacity[r]
            link_use[r] = link_used[r] / link_capacity[r] if system else 0.0
            link_count += 1.0
            link_sum += link_use[r]
            link_squares += link_use[r] * link_use[r]
    nodes_before = node_count, node_sum, node_squares
    links_before = max(link_count, 1.0), link_sum, link_squares
    return free, use, inverse, *nodes_before, fits, residual, link_use, link_inverse, *links_before


@compiled
def linked(
    flow_src: IntArray, flow_dst: IntArray, nodes: IntArray, tasks: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """``flow_src`` and ``flow_dst`` with candidates for nodes of the cluster, ``flows_first`` and ``flows_of``: each
    task's outgoing flows, then the incoming ones."""
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
    return ends[0].copy(), ends[1].copy(), first, flows_of
