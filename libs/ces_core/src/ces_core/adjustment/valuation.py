"""What assignments are worth: a quick bound for many at once, and the best paths and rates of one, with a proof.

Both come from ``exact``'s tables and leaves for jobs with goals (docs/latency.md), so that a running job is judged by
what placed it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ces_core.exact.goal_leaves import MARGIN, GoalLeaves, GoalPlan
from ces_core.exact.goal_tables import Aim, Option, Reference, Tables
from ces_core.model.path import Path
from ces_core.model.problem import SLACK, BoolArray, FloatArray, Problem
from ces_core.model.service import Service
from ces_core.model.topology import IntArray
from ces_core.network.path_table import PathTable

MOST_PLANS = 64
"""Plans of one assignment that are worked out; beyond it a bound stands for the rest."""
MOST_LEAVES = 400
"""Assignments of one step whose paths and rates are worked out; beyond it a bound stands for the rest."""
LATENESS = 10.0
"""The most that the lateness of a chain, as a share of its deadline, lowers the promise of an assignment."""


@dataclass(eq=False)
class KeptPaths(Tables):
    """Tables in which every flow keeps its path."""

    paths: Sequence[Path] = ()

    def options(self, flow: int, a: int, b: int) -> list[Option]:
        return [option for option in super().options(flow, a, b) if option.path == self.paths[flow]]


@dataclass(frozen=True)
class Looked:
    """``plan``: the best one, if it was worth more than was asked for, and what its moves ``cost`` in units of the
    objective. ``bound``: no plan that was looked at is worth more, its moves paid. ``proven``: no assignment was left
    out of the bound."""

    plan: GoalPlan | None
    cost: float
    bound: float


class Valuation:
    """Of assignments within ``domain``, (T, N)."""

    def __init__(
        self,
        problem: Problem,
        routes: PathTable,
        domain: BoolArray,
        reference: Reference,
        kept: Sequence[Path] | None = None,
    ) -> None:
        service = Service(problem)
        given = (service, Aim.of(service.goals), reference, routes, domain)
        self.tables = Tables(*given) if kept is None else KeptPaths(*given, paths=kept)
        self.leaves = GoalLeaves(self.tables, math.inf, MOST_PLANS)
        self.problem, self.service, self.domain = problem, service, domain

    def best(self, rows: IntArray, costs: FloatArray, above: float) -> Looked:
        """Of the assignments ``rows``, (M, T), the one worth most when its moves are paid, if it is more than
        ``above``."""
        worth = self.bounds(rows) - costs
        found: GoalPlan | None = None
        cost, bound = 0.0, -math.inf
        for looked, i in enumerate(np.argsort(-worth, kind="stable").tolist()):
            if not worth[i] > above + MARGIN or looked == MOST_LEAVES:
                bound = max(bound, float(worth[i]))
                break
            plan, most = self._leaf(rows[i].tolist(), above + float(costs[i]), float(worth[i] + costs[i]))
            bound = max(bound, most - float(costs[i]))
            if plan is not None:
                found, cost = plan, float(costs[i])
                above = plan.value - cost
        return Looked(found, cost, bound)

    def _leaf(self, assignment: list[int], above: float, limit: float) -> tuple[GoalPlan | None, float]:
        """The best plan of an assignment if it is worth more than ``above``, and a bound on all of its plans, of which
        ``limit`` is one."""
        leaves = self.leaves
        threshold = None if above == -math.inf else GoalPlan(above, (), (), ())
        leaves.best, leaves.bound, leaves.plans = threshold, -math.inf, 0
        try:
            leaves.finish(assignment, self._chain_ms(np.array([assignment]))[0])
        except RuntimeError:  # the linear program of rates failed: what is not known of them is bounded
            leaves.bound = limit
        found = None if leaves.best is threshold else leaves.best
        known = above if found is None else found.value
        return found, max(leaves.bound, known + MARGIN)

    def bounds(self, rows: IntArray) -> FloatArray:
        """(M,): what no plan with these assignments exceeds; minus infinity where there is none."""
        value = np.where(self._fits(rows), self._value(rows), -np.inf)
        return self.leaves.limit(value, self._chain_ms(rows), self._works(rows))

    def promise(self, rows: IntArray) -> FloatArray:
        """(M,): as :meth:`bounds`, but with what is late or too full ranked behind the rest, not left out: it may come
        right together with another move."""
        late = np.zeros(len(rows))
        for c, chain in enumerate(self.service.goals.chains):
            if chain.deadline_ms is not None:
                share = self._chain_ms(rows)[:, c] / chain.deadline_ms - 1.0
                late = np.maximum(late, np.clip(share, 0.0, LATENESS))
        return self._value(rows) - late

    def _fits(self, rows: IntArray) -> BoolArray:
        cluster = self.problem.cluster
        tasks = np.arange(rows.shape[1])
        fits: BoolArray = np.asarray(self.domain[tasks[None, :], rows].all(axis=1), dtype=np.bool_)
        free = cluster.node_free + SLACK * cluster.node_capacity
        for r in range(len(free)):
            load = np.zeros((len(rows), free.shape[1]))
            for t in tasks.tolist():
                load[np.arange(len(rows)), rows[:, t]] += self.problem.demand[t, r]
            fits &= np.asarray((load == 0) | (load <= free[r])).all(axis=1)
        first: dict[str, int] = {}
        for t, profile in enumerate(self.service.tasks):
            if profile.group is not None:
                fits &= np.equal(rows[:, t], rows[:, first.setdefault(profile.group, t)])
        return fits

    def _value(self, rows: IntArray) -> FloatArray:
        """(M,): the bound without time."""
        tables = self.tables
        value = np.full(len(rows), tables.constant)
        for t in range(rows.shape[1]):
            value += tables.node_value[t, rows[:, t]] + np.where(self._new(rows, t), tables.wake_value[rows[:, t]], 0.0)
        for f, (src, dst) in enumerate(self._ends(rows)):
            value += tables.flow_value[f, src, dst]
        return value

    def _chain_ms(self, rows: IntArray) -> FloatArray:
        """(M, chains): the least that chains take."""
        ends = self._ends(rows)
        times = np.zeros((len(rows), len(self.service.goals.chains)))
        for c, chain in enumerate(self.service.goals.chains):
            times[:, c] = chain.fixed_ms
            for t in self.service.chain_tasks[c]:
                times[:, c] += self.service.response_ms[t, rows[:, t]]
            for f in self.service.chain_flows[c]:
                times[:, c] += self.tables.flow_ms[f, ends[f][0], ends[f][1]]
        return times

    def _works(self, rows: IntArray) -> FloatArray:
        """(M,): at most this probability that the distinct nodes work."""
        works = np.ones(len(rows))
        for t in range(rows.shape[1]):
            works *= np.where(self._new(rows, t), self.service.profile.node_reliability[rows[:, t]], 1.0)
        return works

    @staticmethod
    def _new(rows: IntArray, t: int) -> BoolArray:
        """(M,): whether no earlier task is on the node of the task."""
        new: BoolArray = (rows[:, :t] != rows[:, t, None]).all(axis=1)
        return new

    def _ends(self, rows: IntArray) -> list[tuple[IntArray, IntArray]]:
        """Each flow's end nodes, (M,) each."""
        problem = self.problem

        def node(end: int) -> IntArray:
            return rows[:, end] if end >= 0 else np.full(len(rows), -1 - end, dtype=np.int64)

        return [
            (node(src), node(dst))
            for src, dst in zip(problem.flow_src.tolist(), problem.flow_dst.tolist(), strict=True)
        ]
