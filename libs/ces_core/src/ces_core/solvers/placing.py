"""The state of a placement under construction: what is left, what it has cost, and how to take a step back.

Scalars live in Python lists and vectors over nodes in numpy arrays: at the size of edge clusters that is what is fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ces_core.paths import Path
from ces_core.plan import REFUSALS
from ces_core.problem import SLACK, FloatArray, Problem
from ces_core.topology import IntArray

NOT_ALLOWED, CPU, MEMORY, GPU, BANDWIDTH = (REFUSALS.index(code) for code in REFUSALS[1:6])
HOP_COST = 0.01
"""What a hop is taken to cost in the first, rough ordering of nodes."""
SHORTFALL_COST = 0.1
"""What it costs, at most, to put a task where its flows to tasks yet to be placed may starve."""


@dataclass(frozen=True)
class _Mark:
    """Where a step back returns to."""

    trail: int
    link_sum: float
    link_squares: float
    lost: float
    free: FloatArray
    load: FloatArray


class Placing:
    """Tasks placed so far. :meth:`place` and :meth:`undo` are each other's inverse, to the last bit."""

    def __init__(self, problem: Problem) -> None:
        cluster, topology = problem.cluster, problem.cluster.topology
        self.problem = problem
        self.between = problem.routes.between
        self.hops_to, self.hops_from = problem.routes.hops_to, problem.routes.hops_from
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
        # Nodes: what is free, and the utilisation whose spread is the imbalance.
        self.free = cluster.node_free + SLACK * cluster.node_capacity
        capacity = cluster.node_capacity[:2]
        there = capacity > 0
        self._counted = np.maximum(there.sum(axis=1), 1)
        self._inverse = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=there)
        system = problem.basis == "system"
        self._load = cluster.node_used[:2] * self._inverse * (1.0 if system else 0.0)
        self._node_weights = np.array(problem.weights[:2])
        # Links (then media): what is left once minimums are reserved, and once the hoped-for rates are given.
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
        # What leaves and enters each node, to look ahead by.
        free = cluster.bandwidth_free[: self._links]
        nodes = len(topology.nodes)
        self.leaving = np.bincount(self.link_src, weights=free, minlength=nodes).astype(np.float64)
        self.entering = np.bincount(self.link_dst, weights=free, minlength=nodes).astype(np.float64)
        self._ends = list(zip(self.link_src.tolist(), self.link_dst.tolist(), strict=True))
        self.node_of: list[int] = [-1] * len(problem.tasks)
        self.paths: list[Path | None] = [None] * len(problem.flows)
        self._lost = 0.0  # satisfaction given up so far, summed over flows
        self._trail: list[tuple[list[float], int, float]] = []
        self._marks: list[_Mark] = []
        self.refused = np.zeros((len(problem.tasks), nodes), dtype=np.int8)
        self.widest_seen = [-1.0] * len(problem.flows)  # the most a flow found where its minimum did not fit
        self.blocked = [0] * len(problem.flows)
        self.stuck = [0] * len(problem.tasks)
        self.chose = False  # whether a flow had more than one path, so that another choice might have fitted
        self.fixed_ok = True  # whether the flows between given nodes have room
        for f, (src, dst) in enumerate(zip(self.src, self.dst, strict=True)):
            if src < 0 and dst < 0:
                self.fixed_ok = self._route(f, -1 - src, -1 - dst) and self.fixed_ok

    def rough_order(self, task: int) -> tuple[IntArray, FloatArray]:
        """Nodes with room for ``task``, best first as far as can be told without looking at bandwidth; also what the
        nodes' part of the composite would be. Notes why the other nodes were refused."""
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
        # Tasks yet to come may share the node; if they do not, their flows need a way in and out.
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
        """What the links' part of the composite would be with ``task`` on ``node``; None where minimums do not fit."""
        mark = self._mark(node)
        value = self._link_value() if self._route_all(task, node) else None
        self._back_to(mark)
        if value is None:
            self.refused[task, node] = BANDWIDTH
        return value

    def place(self, task: int, node: int) -> bool:
        """Puts ``task`` on ``node``; False, and nothing changed, where its flows do not fit."""
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
        """Takes back the latest :meth:`place`, which was of ``task``."""
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
        """Whether the tasks yet to come that ``task`` talks to, and that cannot join it on ``node``, could still be
        reached over the node's own links: necessary, not sufficient."""
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
            room = [self.reserved_left[link] for link in links]
            found = min(max(room, default=0.0), sum(room) - needed[outward])
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
        best_room, widest = -math.inf, -1.0
        for path in ties:
            sure = room = math.inf
            for r, times in path.loads:
                if reserved[r] < sure * times:
                    sure = reserved[r] / times
                if hoped[r] < room * times:
                    room = hoped[r] / times
            if sure > widest:
                widest = sure
            if sure >= low and room > best_room:
                best, best_room = path, room
        if best is None:
            self.blocked[f] += 1
            if widest > self.widest_seen[f]:
                self.widest_seen[f] = widest
            return False
        span = self.high[f] - low
        rate = low + min(max(best_room - low, 0.0), span)
        if span > 0.0:
            # Below the minimum it takes from flows that hoped for more.
            self._lost += 1.0 - min((best_room - low) / span, 1.0)
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
