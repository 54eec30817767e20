"""A problem as flat arrays over candidate nodes: what compiled code works on.

Nodes are candidates here, numbered 0..C-1; links and media are the *resources* of :class:`ces_core.paths.Path`,
numbered as everywhere (links, then media). What the rest of the cluster contributes to the spreads is kept as sums, so
that a decision among few candidates costs nothing for the nodes and links that it does not touch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """The problem over ``candidates`` (indices in the cluster; all nodes that some task may use where None).

    Nodes that flows name as their ends are always among the candidates, whether or not a task may run there.
    """
    cluster = problem.cluster
    free = cluster.node_free + SLACK * cluster.node_capacity
    if candidates is None:
        candidates = np.flatnonzero(problem.homes.any(axis=0))
    fixed = -1 - np.concatenate([problem.flow_src, problem.flow_dst])
    nodes = np.union1d(candidates, fixed[fixed >= 0]).astype(np.int64)
    local = np.full(len(cluster.topology.nodes), -1, dtype=np.int64)
    local[nodes] = np.arange(len(nodes))
    system = 1.0 if problem.basis == "system" else 0.0
    node_inverse = _inverse(cluster.node_capacity[:2])
    node_use = cluster.node_used[:2] * node_inverse * system
    media = np.zeros(len(cluster.medium_capacity))
    link_inverse = np.concatenate([_inverse(cluster.link_capacity), media])
    link_use = np.concatenate([cluster.link_used * system, media]) * link_inverse
    paths = problem.routes.flat(nodes)
    flows_first, flows_of = _flows_of(problem)
    return Compact(
        nodes=nodes,
        free=np.ascontiguousarray(free[:, nodes]),
        use=np.ascontiguousarray(node_use[:, nodes]),
        inverse=np.ascontiguousarray(node_inverse[:, nodes]),
        node_count=np.maximum((node_inverse > 0).sum(axis=1), 1).astype(np.float64),
        node_sum=node_use.sum(axis=1),
        node_squares=(node_use**2).sum(axis=1),
        demand=np.ascontiguousarray(problem.demand),
        fits=np.ascontiguousarray(problem.homes[:, nodes] & np.isin(nodes, candidates)),
        flow_src=_ends(problem.flow_src, local),
        flow_dst=_ends(problem.flow_dst, local),
        low=problem.flow_min,
        high=problem.flow_max,
        flows_first=flows_first,
        flows_of=flows_of,
        pair_first=paths.pair_first,
        path_first=paths.path_first,
        path_resource=paths.resource,
        path_times=paths.times,
        # None where more is in use than there is: nobody may add to that, not even what rounding would forgive.
        room=np.where(cluster.bandwidth_free > 0, cluster.bandwidth_free + SLACK * cluster.bandwidth_capacity, 0.0),
        link_use=link_use,
        link_inverse=link_inverse,
        link_count=float(max(int((cluster.link_capacity > 0).sum()), 1)),
        link_sum=float(link_use.sum()),
        link_squares=float((link_use**2).sum()),  # a product of vectors would wake threads that cost more
        weights=np.array(problem.weights),
        worth=np.zeros(0),
    )


def path_of(problem: Problem, view: Compact, src: int, dst: int, path: int) -> Path:
    """The path that compiled code calls ``path``, which leads from candidate ``src`` to candidate ``dst``."""
    first = int(view.pair_first[src * len(view.nodes) + dst])
    return problem.routes.between(int(view.nodes[src]), int(view.nodes[dst]))[path - first]


def _inverse(capacity: FloatArray) -> FloatArray:
    return np.divide(1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0)


def _ends(ends: IntArray, local: IntArray) -> IntArray:
    fixed = ends < 0
    result = ends.copy()
    result[fixed] = -1 - local[-1 - ends[fixed]]
    return result


def _flows_of(problem: Problem) -> tuple[IntArray, IntArray]:
    """Per task the flows that begin or end at it."""
    flows = np.arange(len(problem.flows), dtype=np.int64)
    ends = np.concatenate([problem.flow_src, problem.flow_dst])
    both = np.concatenate([flows, flows])
    order = np.argsort(ends, kind="stable")
    order = order[ends[order] >= 0]
    first = np.searchsorted(ends[order], np.arange(len(problem.tasks) + 1)).astype(np.int64)
    return first, both[order]
