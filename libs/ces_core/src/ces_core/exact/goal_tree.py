"""Depth-first branch and bound for jobs with goals: nodes task by task, then paths flow by flow, then rates.

It is plain Python over the tables of :mod:`ces_core.exact.goal_tables`, meant for small instances. Chains that cannot
end in time, with the best node and the least delay for what is open, are cut off, and so is a reliability below the
least one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ces_core.exact.goal_leaves import GoalLeaves, GoalPlan
from ces_core.exact.goal_tables import Tables
from ces_core.model.problem import SLACK, FloatArray
from ces_core.model.topology import IntArray


@dataclass(frozen=True, eq=False)
class _Partial:
    """Sums over what is placed, with the best for what is open. ``works``: all nodes in use, together; ``links_work``:
    the least of the best paths' reliabilities."""

    value: float
    flow_value: FloatArray  # (F,)
    flow_ms: FloatArray  # (F,)
    chain_ms: FloatArray  # (chains,)
    works: float
    links_work: float


class GoalTree(GoalLeaves):
    """Searches for the best plan of an aim; the rest is inherited."""

    def __init__(self, tables: Tables, deadline: float, most_plans: float = math.inf) -> None:
        super().__init__(tables, deadline, most_plans)
        problem, cluster = self.problem, self.problem.cluster
        self.free = cluster.node_free + SLACK * cluster.node_capacity
        self.ends = list(zip(problem.flow_src.tolist(), problem.flow_dst.tolist(), strict=True))
        self.order = self._order()
        self.flows_of = [[f for f, ends in enumerate(self.ends) if t in ends] for t in range(len(problem.tasks))]
        self.group = [task.group for task in self.service.tasks]
        self.assignment = [-1] * len(problem.tasks)
        self.load = np.zeros_like(cluster.node_capacity)
        self.fixed = self._fixed_nodes()
        response = np.where(tables.domain, self.service.response_ms, np.inf)
        self.task_ms: FloatArray = response.min(axis=1, initial=np.inf)
        self.task_value: FloatArray = np.where(tables.domain, tables.node_value, -np.inf).max(axis=1, initial=-np.inf)

    def _order(self) -> list[int]:
        """The most constrained task first, then those with flows to the tasks before."""
        sizes = self.tables.domain.sum(axis=1)
        order: list[int] = []

        def rank(t: int) -> tuple[float, float, int]:
            near = sum((a == t and (b in order or b < 0)) or (b == t and (a in order or a < 0)) for a, b in self.ends)
            return float(sizes[t]) / (1 + near), -float(self.problem.demand[t].sum()), t

        while len(order) < len(sizes):
            order.append(min((t for t in range(len(sizes)) if t not in order), key=rank))
        return order

    def _fixed_nodes(self) -> set[int]:
        """The nodes that every plan uses, since flows begin or end there."""
        fixed = {-1 - dst for _, dst in self.ends if dst < 0}
        for flow, (src, _) in zip(self.problem.flows, self.ends, strict=True):
            if src < 0 and (flow.sources is None or len(flow.sources) == 1):
                fixed.add(-1 - src)
        return fixed

    def run(self, known: GoalPlan | None = None) -> None:
        """Looks for a plan that is better than ``known``."""
        self.best = known
        root = self._root()
        if root.value > -math.inf:
            self._place(0, root)
        if self.best is not None:
            self.bound = max(self.bound, self.best.value)

    def _root(self) -> _Partial:
        tables, service = self.tables, self.service
        flow_value: FloatArray = tables.flow_value.max(axis=(1, 2), initial=-np.inf)
        flow_ms: FloatArray = tables.flow_ms.min(axis=(1, 2), initial=np.inf)
        chains = zip(service.goals.chains, service.chain_tasks, service.chain_flows, strict=True)
        chain_ms = [
            chain.fixed_ms + sum(float(self.task_ms[t]) for t in tasks) + sum(float(flow_ms[f]) for f in flows)
            for chain, tasks, flows in chains
        ]
        works = math.prod(float(service.profile.node_reliability[n]) for n in self.fixed)
        value = tables.constant + float(self.task_value.sum()) + float(flow_value.sum())
        return _Partial(value, flow_value, flow_ms, np.array(chain_ms, dtype=np.float64), works, 1.0)

    def _place(self, k: int, before: _Partial) -> None:
        if k == len(self.order):
            self.finish(self.assignment, before.chain_ms)
            return
        t = self.order[k]
        nodes = self._open_nodes(t)
        limits, below = self._children(t, nodes, before)
        for i in np.argsort(-limits, kind="stable").tolist():
            limit, n = float(limits[i]), int(nodes[i])
            if not self.better(limit):
                break
            if self.late():
                self.put_off(limit)
                continue
            self.assignment[t] = n
            self.load[:, n] += self.problem.demand[t]
            self._place(k + 1, below(i))
            self.load[:, n] -= self.problem.demand[t]
            self.assignment[t] = -1

    def _open_nodes(self, t: int) -> IntArray:
        """The nodes that the task may take beside those that are placed."""
        fits = self.tables.domain[t].copy()
        for r in range(len(self.free)):
            if self.problem.demand[t, r] > 0:
                fits &= self.load[r] + self.problem.demand[t, r] <= self.free[r]
        if self.group[t] is not None:
            for other, n in enumerate(self.assignment):
                if n >= 0 and self.group[other] == self.group[t]:
                    fits &= np.arange(len(fits)) == n
        return np.flatnonzero(fits)

    def _children(self, t: int, nodes: IntArray, before: _Partial) -> tuple[FloatArray, Callable[[int], _Partial]]:
        """Bounds with the task on each of the nodes, and the sums that belong to each."""
        tables, service = self.tables, self.service
        in_use = {*self.assignment}
        new = np.array([n not in in_use for n in nodes.tolist()], dtype=np.bool_)
        value = before.value - float(self.task_value[t]) + tables.node_value[t, nodes]
        value = value + np.where(new, tables.wake_value[nodes], 0.0)
        chain_ms = np.repeat(before.chain_ms[None, :], len(nodes), axis=0)
        slower = service.response_ms[t, nodes] - self.task_ms[t]
        for c, tasks in enumerate(service.chain_tasks):
            if t in tasks:
                chain_ms[:, c] += tasks.count(t) * slower
        links_work = np.full(len(nodes), before.links_work)
        rows = {f: self._flow_rows(f, t, nodes) for f in self.flows_of[t]}
        for f, (flow_value, flow_ms, work) in rows.items():
            value = value + (flow_value - before.flow_value[f])
            links_work = np.minimum(links_work, work)
            with np.errstate(invalid="ignore"):  # a flow that takes for ever everywhere takes no longer here
                more = np.nan_to_num(flow_ms - before.flow_ms[f], nan=0.0, posinf=np.inf)
            for c, flows in enumerate(service.chain_flows):
                if f in flows:
                    chain_ms[:, c] += flows.count(f) * more
        fresh = new & ~np.isin(nodes, list(self.fixed))
        works = before.works * np.where(fresh, service.profile.node_reliability[nodes], 1.0)

        def below(i: int) -> _Partial:
            flow_value, flow_ms = before.flow_value.copy(), before.flow_ms.copy()
            for f, row in rows.items():
                flow_value[f], flow_ms[f] = row[0][i], row[1][i]
            return _Partial(float(value[i]), flow_value, flow_ms, chain_ms[i], float(works[i]), float(links_work[i]))

        return self.limit(value, chain_ms, works * links_work), below

    def _flow_rows(self, f: int, t: int, nodes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Best value, least ms and reliability of links of a flow of the task, with the task on each of the nodes."""
        tables = self.tables
        src, dst = self.ends[f]
        other = dst if src == t else src
        value, ms, work = tables.flow_value[f], tables.flow_ms[f], tables.flow_reliability[f]
        if src != t:
            value, ms, work = value.T, ms.T, work.T
        at = -1 - other if other < 0 else self.assignment[other]
        if at >= 0:
            return value[nodes, at], ms[nodes, at], work[nodes, at]
        return value[nodes].max(axis=1), ms[nodes].min(axis=1), np.ones(len(nodes))
