"""The lower half of :mod:`ces_core.exact.goal_tree`: all tasks have nodes; paths flow by flow, then rates."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ces_core.bandwidth.goal_rates import RateGoal, flow_values, goal_rates
from ces_core.exact.goal_tables import Option, Tables
from ces_core.model.objective import evaluate
from ces_core.model.path import Path
from ces_core.model.problem import FloatArray
from ces_core.model.service import ROUNDING

MARGIN = 4e-10
"""Branches that promise less than this over the best plan are left out; the bound allows for it."""


@dataclass(frozen=True)
class GoalPlan:
    """A plan by indices and what it is worth to the aim of the tree."""

    value: float
    assignment: tuple[int, ...]
    paths: tuple[Path, ...]
    bandwidth: tuple[float, ...]


class GoalLeaves:
    """The best plan so far, and what is left to prove. ``bound``: no plan is worth more than this and than ``best``,
    once the tree has ended; ``complete``: nothing was left out for lack of time."""

    def __init__(self, tables: Tables, deadline: float, most_plans: float = math.inf) -> None:
        self.tables, self.service, self.aim = tables, tables.service, tables.aim
        self.problem = self.service.problem
        self.deadline, self.most_plans = deadline, most_plans
        self.best: GoalPlan | None = None
        self.bound = -math.inf
        self.complete = True
        self.plans = 0
        goals = self.service.goals
        self.names = [chain.name for chain in goals.chains]
        self.chains_of = {name: [c for c, each in enumerate(self.names) if each == name] for name in self.names}
        self.deadlines = {chain.name: chain.deadline_ms for chain in goals.chains if chain.deadline_ms is not None}
        self.soft = sorted({chain.name for chain in goals.chains if chain.deadline_ms is not None and not chain.hard})
        self.hard = {name: self.deadlines[name] for name in sorted(self.aim.deadlines)}
        self.share = self.aim.time / len(self.soft) if self.soft else 0.0

    def limit(self, value: FloatArray, chain_ms: FloatArray, works: FloatArray) -> FloatArray:
        """Upper bound on what the aim can reach: with sums ``value`` (N,), chains ``chain_ms`` (N, chains), and nodes
        and links that work with probability ``works`` (N,). Minus infinity where a goal is out of reach."""
        if self.aim.slowest is not None:
            total = -chain_ms[:, self.chains_of[self.aim.slowest]].max(axis=1)
        elif self.aim.reliability:
            total = works
        else:
            total = value + (0.0 if self.soft else self.aim.time)
            for name in self.soft if self.share else ():
                longest = chain_ms[:, self.chains_of[name]].max(axis=1)
                total = total + self.share * np.maximum(0.0, 1.0 - longest / self.deadlines[name])
        lost = (value == -np.inf) | (works < self.aim.least_reliability * (1 - ROUNDING))
        for name, most in self.hard.items():
            lost |= (chain_ms[:, self.chains_of[name]] > most * (1 + ROUNDING)).any(axis=1)
        return np.where(lost, -np.inf, total)

    def better(self, limit: float) -> bool:
        return limit > -math.inf and (self.best is None or limit > self.best.value + MARGIN)

    def late(self) -> bool:
        return self.plans >= self.most_plans or time.perf_counter() > self.deadline

    def put_off(self, limit: float) -> None:
        """A branch that promises ``limit`` is left unexplored."""
        self.complete, self.bound = False, max(self.bound, limit)

    def finish(self, assignment: Sequence[int], chain_ms: FloatArray) -> None:
        """All tasks have their nodes. ``chain_ms``: the least that chains take now."""
        ends = self.problem.flow_ends(assignment)
        options = [self.tables.options(f, a, b) for f, (a, b) in enumerate(ends)]
        if not all(options):
            return
        value = self._nodes_value(assignment, self._load(assignment)) + sum(each[0].value for each in options)
        self._route(assignment, options, [], value, chain_ms, self.tables.residual.copy())

    def _nodes_value(self, assignment: Sequence[int], load: FloatArray) -> float:
        """The part of the objective that nodes decide, exactly, with the links' part that is constant."""
        aim, service, problem, tables = self.aim, self.service, self.problem, self.tables
        cluster = problem.cluster
        use, spread = cluster.node_used * (problem.basis == "system") + load, tables.links_constant
        for r in range(2):
            there = cluster.node_capacity[r] > 0
            if there.any():
                spread += problem.weights[r] * float(np.std(use[r][there] / cluster.node_capacity[r][there]))
        change = service.power_change_w(assignment, (), ())
        value = aim.balance * (1.0 - spread) - aim.moves * service.move_cost(assignment)
        value += 0.0 if problem.flows else aim.bandwidth
        return value + aim.energy - tables.per_watt * (change - service.power_range_w[0])

    def _route(
        self,
        assignment: Sequence[int],
        options: list[list[Option]],
        chosen: list[Option],
        value: float,
        chain_ms: FloatArray,
        reserve: FloatArray,
    ) -> None:
        """Chooses the path of the next flow. ``reserve``: what is left beside the minimums of the chosen ones."""
        works = self.service.reliability(assignment, [option.path for option in chosen])
        limit = float(self.limit(np.array([value]), chain_ms[None, :], np.array([works]))[0])
        if not self.better(limit):
            return
        if self.late():
            self.put_off(limit)
            return
        f = len(chosen)
        if f == len(options):
            self._rates(assignment, tuple(option.path for option in chosen), chain_ms, limit)
            return
        low = float(self.problem.flow_min[f])
        fastest = min(option.least_ms for option in options[f])
        for option in options[f]:
            if any(reserve[r] < low * times for r, times in option.path.loads):
                continue
            times = chain_ms.copy()
            for c, flows in enumerate(self.service.chain_flows):
                if f in flows and option.least_ms > fastest:
                    times[c] += flows.count(f) * (option.least_ms - fastest)
            for r, count in option.path.loads:
                reserve[r] -= low * count
            less = option.value - options[f][0].value
            self._route(assignment, options, [*chosen, option], value + less, times, reserve)
            for r, count in option.path.loads:
                reserve[r] += low * count

    def _rates(self, assignment: Sequence[int], paths: tuple[Path, ...], chain_ms: FloatArray, limit: float) -> None:
        """Nodes and paths are chosen: the best rates, for each set of soft deadlines that are to be met."""
        for goal, constant, most in self._rate_goals(assignment, paths, chain_ms, limit):
            if not self.better(most):
                continue
            found = goal_rates(self.service, assignment, paths, goal)
            if found is not None:
                self.bound = max(self.bound, min(most, found.bound + constant))
                self._keep(assignment, paths, found.bandwidth)

    def _rate_goals(
        self, assignment: Sequence[int], paths: tuple[Path, ...], chain_ms: FloatArray, limit: float
    ) -> Iterator[tuple[RateGoal, float, float]]:
        """What rates are to reach, what comes on top of it, and a bound on the sum. A soft deadline that is missed
        counts as nothing, which is not concave; so each set of them that could be met is tried by itself."""
        aim, problem = self.aim, self.problem
        nothing = np.zeros(len(paths))
        if aim.slowest is not None:
            yield RateGoal(nothing, 0.0, {aim.slowest: 1.0}, self.hard), 0.0, limit
            return
        if aim.reliability:
            yield RateGoal(nothing, 0.0, {}, self.hard), self.service.reliability(assignment, paths), limit
            return
        tables = self.tables
        share = aim.bandwidth / max(1, len(paths))
        moves = np.array([bool(path.links) for path in paths], dtype=np.bool_) & (tables.span > 0)
        each = np.where(moves, share / np.where(moves, tables.span, 1.0), 0.0)
        constant = self._nodes_value(assignment, self._load(assignment)) + aim.balance * tables.links_constant
        constant += float(np.where(moves, -each * problem.flow_min, share).sum()) + (0.0 if self.soft else aim.time)
        value = flow_values(self.service, paths, aim.bandwidth, tables.per_watt)
        spread = aim.balance * problem.weights[2]
        gains = {}
        for name in self.soft if self.share else ():
            gain = 1.0 - float(chain_ms[self.chains_of[name]].max()) / self.deadlines[name]
            if gain > 0:
                gains[name] = self.share * gain
        for size in range(len(gains), -1, -1):
            for met in combinations(sorted(gains), size):
                times = {name: self.share / self.deadlines[name] for name in met}
                limits = self.hard | {name: self.deadlines[name] for name in met}
                most = limit - sum(gain for name, gain in gains.items() if name not in met)
                yield RateGoal(value, spread, times, limits), constant + self.share * len(met), most

    def _load(self, assignment: Sequence[int]) -> FloatArray:
        """(resources, nodes): what the tasks put on the nodes."""
        load = np.zeros_like(self.problem.cluster.node_capacity)
        np.add.at(load.T, list(assignment), self.problem.demand)
        return load

    def _keep(self, assignment: Sequence[int], paths: tuple[Path, ...], bandwidth: tuple[float, ...]) -> None:
        if self.aim.slowest is not None:
            requests = self.service.requests(assignment, paths, bandwidth)
            value = -next(each.time_ms for each in requests if each.name == self.aim.slowest)
        elif self.aim.reliability:
            value = self.service.reliability(assignment, paths)
        else:
            service = evaluate(self.problem, assignment, paths, bandwidth).service
            value = 0.0 if service is None else service.objective
        self.plans += 1
        if self.best is None or value > self.best.value:
            self.best = GoalPlan(value, tuple(assignment), paths, bandwidth)
