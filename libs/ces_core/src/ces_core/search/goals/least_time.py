"""The least time that a chain can take, by variable elimination over its tasks (R. Dechter, "Bucket elimination",
Artificial Intelligence 113, 1999): each task on the node, each flow on the path and at the rate that suit the chain, as
if nothing else were placed. No plan is faster.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from ces_core.model.problem import SLACK, BoolArray, FloatArray, Problem
from ces_core.model.service import Service, Step
from ces_core.model.topology import IntArray
from ces_core.network.cache import paths_for
from ces_core.network.path_table import MOST_NODES, PathTable

LARGEST = 300_000
"""Maximum entries of a table; a chain that would need larger ones is not examined."""
Factor = tuple[tuple[int, ...], FloatArray]
"""Tasks, and the ms of each choice of their nodes; nodes are counted among those that the task may have."""


class LeastTime:
    """Of the chains of one problem. ``domain``: (T, N), where each task may be. Tables are over ``nodes``, all that may
    be an end of a flow; a node has its ``seat`` among them."""

    def __init__(self, problem: Problem, service: Service, domain: BoolArray) -> None:
        self.problem, self.service = problem, service
        self.homes: list[IntArray] = [np.flatnonzero(row) for row in domain]
        self.routes: PathTable = paths_for(problem)
        self.free = problem.cluster.bandwidth_free + SLACK * problem.cluster.bandwidth_capacity
        fixed = [-1 - end for end in (*problem.flow_src.tolist(), *problem.flow_dst.tolist()) if end < 0]
        sources = [source for f in range(len(problem.flows)) for source in self._sources(f)]
        used = np.concatenate([*self.homes, np.array([*fixed, *sources], dtype=np.int64)])
        self.nodes: IntArray = np.unique(used)
        self.seat = np.full(len(problem.cluster.topology.nodes), -1)
        self.seat[self.nodes] = np.arange(len(self.nodes))
        self._tables: dict[int, FloatArray] = {}

    def of(self, c: int) -> tuple[float, tuple[Step, ...]] | None:
        """The least ms of chain ``c`` with its steps; infinite where there is no way, without steps where a
        task has no node. None: too large."""
        service = self.service
        tasks, flows = service.chain_tasks[c], service.chain_flows[c]
        ends = [(int(self.problem.flow_src[f]), int(self.problem.flow_dst[f])) for f in flows]
        involved = {*tasks, *(end for pair in ends for end in pair if end >= 0)}
        if not all(len(self.homes[t]) for t in involved):
            return math.inf, ()
        if len(self.nodes) > MOST_NODES or len(self.nodes) ** 2 > LARGEST:
            return None
        factors = [self._task(t) for t in tasks] + [self._flow(f, *pair) for f, pair in zip(flows, ends, strict=True)]
        place = self._places(involved, factors)
        if place is None:
            return None
        fixed = service.goals.chains[c].fixed_ms
        steps = [Step("access", fixed)] if fixed else []
        names = self.problem.cluster.topology.nodes
        for t in tasks:
            n = int(self.homes[t][place[t]])
            steps.append(Step(f"{self.problem.tasks[t].name} on {names[n]}", float(service.response_ms[t, n])))
        for f, (a, b) in zip(flows, ends, strict=True):
            src, dst = (int(self.homes[e][place[e]]) if e >= 0 else -1 - e for e in (a, b))
            ms, source = self._fastest(f, src, dst)
            steps.append(Step(f"{names[source]} -> {names[dst]}", ms))
        return sum(step.ms for step in steps), tuple(steps)

    def _task(self, t: int) -> Factor:
        return (t,), self.service.response_ms[t, self.homes[t]]

    def _flow(self, f: int, src: int, dst: int) -> Factor:
        sources = self._sources(f) or (self.homes[src].tolist() if src >= 0 else [-1 - src])
        targets = self.homes[dst] if dst >= 0 else np.array([-1 - dst])
        scope = tuple(end for end in (src, dst) if end >= 0)
        table = self._between(f)[np.ix_(self.seat[sources], self.seat[targets])]
        if self._sources(f):
            table = table.min(axis=0)
        return scope, table.reshape([len(self.homes[end]) for end in scope])

    def _fastest(self, f: int, src: int, dst: int) -> tuple[float, int]:
        """The least ms between two nodes, from any of the flow's sources, and the node where it begins."""
        sources = self._sources(f) or [src]
        ms = self._between(f)[self.seat[sources], self.seat[dst]]
        first = int(np.argmin(ms))
        return float(ms[first]), sources[first]

    def _sources(self, f: int) -> list[int]:
        """Nodes of which one sends the flow; none where a task, or one node alone, does."""
        index = self.problem.cluster.topology.node_index
        return [index[name] for name in self.problem.flows[f].sources or ()]

    def _between(self, f: int) -> FloatArray:
        """(seats, seats): the least ms of a flow between any two nodes; infinite where no path is wide enough."""
        if f not in self._tables:
            flow, (first, delay, width) = self.problem.flows[f], self._paths
            rate = np.minimum(flow.max, width) / self.problem.units.mbit
            sending = np.divide(flow.message * 8e-3, rate, out=np.full_like(rate, np.inf), where=rate > 0)
            ms = np.where(width >= flow.min, delay + (sending if flow.message > 0 else 0.0), np.inf)
            table = _grouped(np.minimum, ms, first, np.inf).reshape(len(self.nodes), len(self.nodes))
            np.fill_diagonal(table, 0.0)
            self._tables[f] = table
        return self._tables[f]

    @cached_property
    def _paths(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """For each pair of seats where its paths begin; of each path the delay in ms, and how wide it is."""
        flat, service = self.routes.flat(self.nodes), self.service
        links = flat.resource < len(service.profile.delay_ms)
        delay = np.zeros(len(flat.resource))
        delay[links] = service.profile.delay_ms[flat.resource[links]]
        width = _grouped(np.minimum, self.free[flat.resource] / flat.times, flat.path_first, np.inf)
        return flat.pair_first, _grouped(np.add, delay, flat.path_first, 0.0), width

    def _places(self, tasks: set[int], factors: list[Factor]) -> dict[int, int] | None:
        """The place of each task, an index into its homes, with the least sum of all factors. None: too large."""
        done: list[tuple[int, tuple[int, ...], FloatArray]] = []
        left = set(tasks)
        while left:
            t = min(left, key=lambda t: (len({u for scope, _ in factors if t in scope for u in scope}), t))
            touching = [factor for factor in factors if t in factor[0]]
            scope = (*sorted({u for each, _ in touching for u in each} - {t}), t)
            if np.prod([float(len(self.homes[u])) for u in scope]) > LARGEST:
                return None
            total = np.zeros([len(self.homes[u]) for u in scope])
            for each, table in touching:
                total = total + _spread(each, table, scope)
            done.append((t, scope[:-1], total))
            factors = [factor for factor in factors if t not in factor[0]]
            if len(scope) > 1:
                factors.append((scope[:-1], total.min(axis=-1)))
            left.remove(t)
        place: dict[int, int] = {}
        for t, others, total in reversed(done):
            place[t] = int(np.argmin(total[tuple(place[u] for u in others)]))
        return place


def _grouped(how: np.ufunc, values: FloatArray, first: IntArray, empty: float) -> FloatArray:
    """The groups that begin at ``first``, which names the end, too, each reduced to one number; ``empty``: of those
    without values."""
    found = np.full(len(first) - 1, empty)
    there = first[1:] > first[:-1]
    if there.any():
        found[there] = how.reduceat(values, first[:-1][there])
    return found


def _spread(scope: tuple[int, ...], table: FloatArray, over: tuple[int, ...]) -> FloatArray:
    """The table with an axis for each task of ``over``, in that order; of length 1 where it does not depend on it."""
    order = sorted(range(len(scope)), key=lambda i: over.index(scope[i]))
    shape = [table.shape[scope.index(u)] if u in scope else 1 for u in over]
    return np.transpose(table, order).reshape(shape)
