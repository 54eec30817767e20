"""State of the greedy construction: residual capacity, cost so far, and exact undo.

Scalars are kept in Python lists and vectors over nodes in numpy arrays, which is fastest at the size of edge clusters.
It is no :class:`ces_core.placement.state.State`: that one sees candidates only and undoes by subtraction, while the
reasons given here need every node of the cluster and an undo that is exact to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ces_core.model.path import Path
from ces_core.model.plan import REFUSALS
from ces_core.model.problem import SLACK, FloatArray, Problem
from ces_core.model.topology import IntArray
from ces_core.network.cache import paths_for

NOT_ALLOWED, CPU, MEMORY, GPU, BANDWIDTH = (REFUSALS.index(code) for code in REFUSALS[1:6])
HOP_COST = 0.01
"""Estimated cost of a hop in the first, rough ranking of nodes."""
SHORTFALL_COST = 0.1
"""Maximum penalty for a node whose links may be too narrow for flows to tasks not yet placed."""


@dataclass(frozen=True)
class _Mark:
    """Snapshot to which :meth:`GreedyState.undo` returns."""

    trail: int
    link_sum: float
    link_squares: float
    lost: float
    free: FloatArray
    load: FloatArray


class GreedyState:
    """Tasks placed so far. :meth:`place` and :meth:`undo` are exact inverses, to the last bit."""

    def __init__(self, problem: Problem) -> None:
        cluster, topology = problem.cluster, problem.cluster.topology
        self.problem = problem
        self.between = paths_for(problem).between
        self.hops_to, self.hops_from = paths_for(problem).hops_to, paths_for(problem).hops_from
        self.link_src, self.link_dst = topology.link_src, topology.link_dst
        self._links_from, self._links_to = topology.links_from, topology.links_to
        self.demand = problem.demand
        self.low, self.high = problem.flow_min.tolist(), problem.flow_max.tolist()
        self.src, self.dst = problem.flow_src.tolist(), problem.flow_dst.tolist()
        self.flows_of: list[list[int]] = [[] for _ in problem.tasks]
        for f in sorted(range(len(problem.flows)), key=lambda f: (-self.low[f], f)):
            for end in {self.src[f], self.dst[f]}:
                if end >= 0:
                    self.flows_of[end].append(f)
        # Nodes: free capacity, and the utilisation whose spread is the imbalance.
        self.free = cluster.node_free + SLACK * cluster.node_capacity
        capacity = cluster.node_capacity[:2]
        there = capacity > 0
        self._counted = np.maximum(there.sum(axis=1), 1)
        self._inverse = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=there)
        system = problem.basis == "system"
        self._load = cluster.node_used[:2] * self._inverse * (1.0 if system else 0.0)
        self._node_weights = np.array(problem.weights[:2])
        # Links, then media: capacity left by reserved minimums, and by expected rates.
        slack = SLACK * cluster.bandwidth_capacity
        self.reserved_left: list[float] = (cluster.bandwidth_free + slack).tolist()
        self.hoped_left: list[float] = cluster.bandwidth_free.tolist()
        self._links = len(cluster.link_capacity)
        self._link_inverse = [1.0 / c if c > 0 else 0.0 for c in cluster.link_capacity.tolist()]
        used = cluster.link_used.tolist() if system else [0.0] * self._links
        self._link_load = [u * i for u, i in zip(used, self._link_inverse, strict=True)]
        self._links_counted = max(1, sum(1 for i in self._link_inverse if i))
        self._link_sum = math.fsum(self._link_load)
        self._link_squares = math.fsum(u * u for u in self._link_load)
        self._link_weight = problem.weights[2]
        # Free bandwidth out of and into each node, for the lookahead.
        free = cluster.bandwidth_free[: self._links]
        nodes = len(topology.nodes)
        self.leaving = np.bincount(self.link_src, weights=free, minlength=nodes).astype(np.float64)
        self.entering = np.bincount(self.link_dst, weights=free, minlength=nodes).astype(np.float64)
        self._ends = list(zip(self.link_src.tolist(), self.link_dst.tolist(), strict=True))
        self.node_of: list[int] = [-1] * len(problem.tasks)
        self.paths: list[Path | None] = [None] * len(problem.flows)
        self._lost = 0.0  # satisfaction lost so far, summed over flows
        self._trail: list[tuple[list[float], int, float]] = []
        self._marks: list[_Mark] = []
        self.refused = np.zeros((len(problem.tasks), nodes), dtype=np.int8)
        self.widest_seen = [-1.0] * len(problem.flows)  # largest capacity found where the minimum did not fit
        self.blocked = [0] * len(problem.flows)
        self.stuck = [0] * len(problem.tasks)
        self.chose = False  # whether some flow had several paths, so that another choice might have fitted
        self.fixed_ok = True  # whether the flows between fixed nodes fit
        for f, (src, dst) in enumerate(zip(self.src, self.dst, strict=True)):
            if src < 0 and dst < 0:
                self.fixed_ok = self._route(f, -1 - src, -1 - dst) and self.fixed_ok

    def rough_order(self, task: int) -> tuple[IntArray, FloatArray]:
        """Nodes that fit ``task``, ranked without examining bandwidth, and the nodes' part of the composite on each.
        Records why other nodes were refused."""
        demand = self.demand[task]
        short = self.free < demand[:, None]
        refused = np.where(
            self.problem.allowed[task],
            np.where(short[0], CPU, np.where(short[1], MEMORY, np.where(short[2], GPU, 0))),
            NOT_ALLOWED,
        )
        self.refused[task] = refused
        fits: IntArray = np.flatnonzero(refused == 0)
        more = demand[:2, None] * self._inverse[:, fits]
        load = self._load[:, fits]
        mean = (self._load.sum(axis=1)[:, None] + more) / self._counted[:, None]
        square = ((self._load**2).sum(axis=1)[:, None] + more * (2 * load + more)) / self._counted[:, None]
        spread = np.sqrt(np.maximum(square - mean * mean, 0.0))
        value: FloatArray = -0.5 * (self._node_weights @ spread)
        rough = value.copy()
        ahead_out = ahead_in = 0.0
        for f in self.flows_of[task]:
            out = self.src[f] == task
            other = self._node_at(self.dst[f] if out else self.src[f])
            if other is None:
                if out:
                    ahead_out += self.high[f]
                else:
                    ahead_in += self.high[f]
                continue
            hops = (self.hops_to(other) if out else self.hops_from(other))[fits]
            rough -= HOP_COST * hops
            rough[hops < 0] = -np.inf
        # Unplaced tasks may share the node; if not, their flows need bandwidth in and out.
        flows = max(1, len(self.low))
        for ahead, left in ((ahead_out, self.leaving), (ahead_in, self.entering)):
            if ahead > 0:
                short_by = np.clip(1.0 - left[fits] / ahead, 0.0, 1.0)
                value = value - SHORTFALL_COST * short_by * min(1.0, 4.0 / flows)
                rough -= SHORTFALL_COST * short_by
        cut_off = np.isneginf(rough)
        self.refused[task, fits[cut_off]] = BANDWIDTH
        order = np.argsort(-rough, kind="stable")[: len(fits) - int(cut_off.sum())]
        return fits[order], value[order]

    def try_links(self, task: int, node: int) -> float | None:
        """The links' part of the composite with ``task`` on ``node``; None where minimums do not fit."""
        mark = self._mark(node)
        value = self._link_value() if self._route_all(task, node) else None
        self._back_to(mark)
        if value is None:
            self.refused[task, node] = BANDWIDTH
        return value

    def place(self, task: int, node: int) -> bool:
        """Puts ``task`` on ``node``. Returns False, changing nothing, where its flows do not fit."""
        mark = self._mark(node)
        if not self._route_all(task, node):
            self._back_to(mark)
            self.refused[task, node] = BANDWIDTH
            return False
        self._marks.append(mark)
        self.node_of[task] = node
        self.free[:, node] -= self.demand[task]
        self._load[:, node] += self.demand[task, :2] * self._inverse[:, node]
        if not self._leaves_room(task, node):
            self.undo(task)
            self.refused[task, node] = BANDWIDTH
            return False
        return True

    def undo(self, task: int) -> None:
        """Undoes the latest :meth:`place`, which must have placed ``task``."""
        node = self.node_of[task]
        self.node_of[task] = -1
        mark = self._marks.pop()
        self.free[:, node], self._load[:, node] = mark.free, mark.load
        self._back_to(mark)

    def _node_at(self, end: int) -> int | None:
        if end < 0:
            return -1 - end
        node = self.node_of[end]
        return node if node >= 0 else None

    def _route_all(self, task: int, node: int) -> bool:
        for f in self.flows_of[task]:
            src, dst = self.src[f], self.dst[f]
            a = node if src == task else self._node_at(src)
            b = node if dst == task else self._node_at(dst)
            if a is not None and b is not None and not self._route(f, a, b):
                return False
        return True

    def _leaves_room(self, task: int, node: int) -> bool:
        """Necessary condition: unplaced neighbours of ``task`` that do not fit on ``node`` can still be reached over
        the node's own links."""
        needed = {True: 0.0, False: 0.0}
        free = self.free[:, node]
        for f in self.flows_of[task]:
            outward = self.src[f] == task
            other = self.dst[f] if outward else self.src[f]
            if self._node_at(other) is not None or self.low[f] <= 0.0:
                continue
            if self.problem.allowed[other, node] and (self.demand[other] <= free).all():
                continue
            links = self._links_from[node] if outward else self._links_to[node]
            residual = [self.reserved_left[link] for link in links]
            found = min(max(residual, default=0.0), sum(residual) - needed[outward])
            if found < self.low[f]:
                self.blocked[f] += 1
                self.widest_seen[f] = max(self.widest_seen[f], found)
                return False
            needed[outward] += self.low[f]
        return True

    def _route(self, f: int, a: int, b: int) -> bool:
        ties = self.between(a, b)
        if a == b:
            self.paths[f] = ties[0]
            return True
        low = self.low[f]
        if len(ties) > 1:
            self.chose = True
        reserved, hoped = self.reserved_left, self.hoped_left
        best: Path | None = None
        best_residual, widest = -math.inf, -1.0
        for path in ties:
            sure = residual = math.inf
            for r, times in path.loads:
                if reserved[r] < sure * times:
                    sure = reserved[r] / times
                if hoped[r] < residual * times:
                    residual = hoped[r] / times
            if sure > widest:
                widest = sure
            if sure >= low and residual > best_residual:
                best, best_residual = path, residual
        if best is None:
            self.blocked[f] += 1
            if widest > self.widest_seen[f]:
                self.widest_seen[f] = widest
            return False
        span = self.high[f] - low
        rate = low + min(max(best_residual - low, 0.0), span)
        if span > 0.0:
            # Below the minimum it takes bandwidth that other flows expected.
            self._lost += 1.0 - min((best_residual - low) / span, 1.0)
        self.paths[f] = best
        trail = self._trail
        for r, times in best.loads:
            trail.append((reserved, r, reserved[r]))
            trail.append((hoped, r, hoped[r]))
            reserved[r] -= times * low
            hoped[r] -= times * rate
        for link in best.links:
            more, before = rate * self._link_inverse[link], self._link_load[link]
            trail.append((self._link_load, link, before))
            self._link_load[link] = before + more
            self._link_sum += more
            self._link_squares += more * (2 * before + more)
        return True

    def _link_value(self) -> float:
        mean = self._link_sum / self._links_counted
        spread = math.sqrt(max(0.0, self._link_squares / self._links_counted - mean * mean))
        return -0.5 * self._link_weight * spread - 0.5 * self._lost / max(1, len(self.low))

    def _mark(self, node: int) -> _Mark:
        free, load = self.free[:, node].copy(), self._load[:, node].copy()
        return _Mark(len(self._trail), self._link_sum, self._link_squares, self._lost, free, load)

    def _back_to(self, mark: _Mark) -> None:
        trail = self._trail
        while len(trail) > mark.trail:
            values, index, value = trail.pop()
            values[index] = value
        self._link_sum, self._link_squares, self._lost = mark.link_sum, mark.link_squares, mark.lost
