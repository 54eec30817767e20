"""Rates for a job with goals, on given paths: what they add to satisfaction, against the spread of the links' use, the
energy of links, and the time that requests take.

``message / rate`` and the standard deviation are convex, so both are replaced by tangents, added cut by cut (J. E.
Kelley, 1960), in a linear program that HiGHS solves. See :mod:`ces_core.bandwidth.linear` for jobs without goals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np

from ces_core.bandwidth.highs import optimum, thread_solver
from ces_core.model.path import Path
from ces_core.model.problem import SLACK, FloatArray
from ces_core.model.service import ROUNDING, Service

ROUNDS = 300
"""Maximum rounds of cuts."""
TOLERANCE = 1e-10
"""Final gap between the value and its bound, unless the rounds run out."""
FIRST_CUTS = (1.0, 0.5, 0.2)
"""Shares of the widest rate at which the time of a message has a tangent from the start."""
NARROWEST = 1e-4
"""Below this share of the widest rate no tangent is taken: it would be too steep for the program's numbers."""
TIGHT = 0.5
"""Share of ROUNDING by which times may exceed their limits in the program; the other half is for reaching them."""
STILL = 1e-12
"""Rates that change by a smaller share of themselves stand still."""
SHORTEST_MS = 1e-3
"""The least unit of time in the program."""
NO_INDEX, NO_VALUES = np.zeros(0, dtype=np.int32), np.zeros(0)


@dataclass(frozen=True)
class RateGoal:
    """What rates are to maximise: ``flow_value . rates - spread_value * std(U_links) - sum of time_value * T``.

    ``flow_value``: (F,), for a unit of bandwidth. ``time_value`` and ``time_limit``: request class -> for a ms, and ms.
    Classes in neither may take as long as they like.
    """

    flow_value: FloatArray
    spread_value: float = 0.0
    time_value: Mapping[str, float] = field(default_factory=dict)
    time_limit: Mapping[str, float] = field(default_factory=dict)


def flow_values(service: Service, paths: Sequence[Path], bandwidth: float, per_watt: float) -> FloatArray:
    """(F,): what a unit of each flow's rate adds to J apart from time and spread. ``bandwidth``: the weight of D;
    ``per_watt``: what a watt costs."""
    span = service.problem.flow_max - service.problem.flow_min
    moves = np.array([bool(path.links) for path in paths], dtype=np.bool_) & (span > 0)
    each = np.where(moves, bandwidth / max(1, len(paths)) / np.where(moves, span, 1.0), 0.0)
    watts = np.array([float(service.link_w[list(path.links)].sum()) for path in paths], dtype=np.float64)
    values: FloatArray = each - per_watt * watts
    return values


@dataclass(frozen=True)
class GoalRates:
    """Rates in the order of the flows, the value that they reach, and a bound on the value of any rates."""

    bandwidth: tuple[float, ...]
    value: float
    bound: float


def goal_rates(service: Service, assignment: Sequence[int], paths: Sequence[Path], goal: RateGoal) -> GoalRates | None:
    """The best rates within ``min..max`` and what links have left, or None where there are none within the limits."""
    return _Program(service, assignment, paths, goal).run()


class _Program:
    """Columns: the share of its widest rate that each flow gets; times of messages, in units of the fastest; times of
    request classes, in units of their limit or least time; the spread."""

    def __init__(self, service: Service, assignment: Sequence[int], paths: Sequence[Path], goal: RateGoal) -> None:
        problem = service.problem
        cluster = problem.cluster
        self.goal, self.paths = goal, paths
        self.flows = len(paths)
        free = cluster.bandwidth_free + SLACK * cluster.bandwidth_capacity
        self.low, self.high = problem.flow_min, problem.flow_max
        self.inside = np.array([not path.links for path in paths], dtype=np.bool_)
        width = [min((free[r] / times for r, times in path.loads), default=math.inf) for path in paths]
        self.widest: FloatArray = np.minimum(self.high, np.array(width, dtype=np.float64))
        self.scale: FloatArray = np.where(self.widest > 0, self.widest, 1.0)
        self.possible = bool((self.low <= self.widest).all())
        self.resources = sorted({r for path in paths for r, _ in path.loads})
        self.free = free
        links = len(cluster.link_capacity)
        self.counted = cluster.link_capacity > 0
        self.count = max(1, int(self.counted.sum()))
        self.inverse = np.divide(1.0, cluster.link_capacity, out=np.zeros(links), where=self.counted)
        used = cluster.link_used if problem.basis == "system" else np.zeros(links)
        self.use: FloatArray = used * self.inverse
        self.share_use = np.zeros((links, self.flows))  # of a whole share of each flow
        for f, path in enumerate(paths):
            for i in path.links:
                self.share_use[i, f] += self.scale[f] * self.inverse[i]
        self._chains(service, assignment)

    def _chains(self, service: Service, assignment: Sequence[int]) -> None:
        """What chains take apart from their messages, which flows' messages matter, and how long they take at best."""
        wanted = self.goal.time_value.keys() | self.goal.time_limit.keys()
        self.classes = sorted(wanted)
        self.chains: list[tuple[str, float, list[int]]] = []
        for c, chain in enumerate(service.goals.chains):
            if chain.name in wanted:
                tasks = [float(service.response_ms[t, assignment[t]]) for t in service.chain_tasks[c]]
                flows = [f for f in service.chain_flows[c] if not self.inside[f]]
                delays = [float(service.profile.delay_ms[list(self.paths[f].links)].sum()) for f in flows]
                fixed = chain.fixed_ms + sum(tasks) + sum(delays)
                self.chains.append((chain.name, fixed, [f for f in flows if service.message_ms[f] > 0]))
        self.sending = sorted({f for _, _, flows in self.chains for f in flows})
        self.fastest = {f: float(service.message_ms[f]) / float(self.scale[f]) for f in self.sending}
        if any(self.widest[f] <= 0 for f in self.sending):
            self.possible = False
        self.unit: dict[str, float] = {}
        for name, fixed, flows in self.chains:
            least = fixed + sum(self.fastest[f] for f in flows)
            if least > self._limit(name) or not math.isfinite(least):
                self.possible = False
            self.unit[name] = max(self.unit.get(name, 0.0), least, SHORTEST_MS)
        self.most = {name: self._limit(name) for name in self.classes}  # in the program

    def _limit(self, name: str) -> float:
        return self.goal.time_limit.get(name, math.inf) * (1 + TIGHT * ROUNDING)

    def run(self) -> GoalRates | None:
        if not self.possible:
            return None
        solver = thread_solver()
        self._load(solver)
        best: tuple[float, FloatArray] | None = None
        bound = reach = math.inf
        before: FloatArray | None = None
        nearer = False
        for _ in range(ROUNDS):
            found = optimum(solver)
            if found is None:
                return None
            reach = min(reach, -found.objective)
            bound = bound if nearer else reach
            wished = found.columns[: self.flows] * self.scale
            rates = np.where(self.inside, self.high, np.clip(wished, self.low, self.widest))
            value = self._value(rates)
            if value is not None and (best is None or value > best[0]):
                best = value, rates
            if best is not None and reach - best[0] <= TOLERANCE:
                break
            if best is None and before is not None and np.allclose(rates, before, rtol=STILL, atol=0.0):
                nearer = True
                self._draw_nearer(solver, rates)
            before = rates
            points = [rates / self.scale]
            if best is not None:
                points.append(0.5 * (points[0] + best[1] / self.scale))
            for shares in points:
                self._cut(solver, shares)
        if best is None:
            raise RuntimeError(f"the times of requests did not settle within {ROUNDS} rounds")
        return GoalRates(tuple(best[1].tolist()), best[0], max(bound, best[0]))

    def _load(self, solver: highspy.Highs) -> None:
        infinity = solver.getInfinity()
        solver.clearModel()
        value = self.goal.flow_value * self.scale
        for f in range(self.flows):
            most = 1.0 if self.widest[f] > 0 else 0.0
            least = most if self.inside[f] else min(most, float(self.low[f] / self.scale[f]))
            solver.addCol(-float(value[f]), least, most, 0, NO_INDEX, NO_VALUES)
        self.column: dict[tuple[str, int | str], int] = {
            ("message", f): self.flows + i for i, f in enumerate(self.sending)
        }
        for _ in self.sending:
            solver.addCol(0.0, 1.0, infinity, 0, NO_INDEX, NO_VALUES)
        for name in self.classes:
            self.column["class", name] = self.flows + len(self.sending) + self.classes.index(name)
            unit = self.unit[name]
            limit = min(self.most[name] / unit, infinity)
            solver.addCol(self.goal.time_value.get(name, 0.0) * unit, 0.0, limit, 0, NO_INDEX, NO_VALUES)
        self.spread = self.flows + len(self.sending) + len(self.classes)
        solver.addCol(self.goal.spread_value, 0.0, infinity, 0, NO_INDEX, NO_VALUES)
        for r in self.resources:
            free = float(self.free[r])
            wide = free or 1.0
            loads = [(f, times) for f, path in enumerate(self.paths) for s, times in path.loads if s == r]
            row = [float(self.scale[f]) * times / wide for f, times in loads]
            _add_row(solver, -infinity, free / wide, [f for f, _ in loads], row)
        for name, fixed, flows in self.chains:
            unit = self.unit[name]
            index = [self.column["class", name], *(self.column["message", f] for f in sorted(set(flows)))]
            times = [-flows.count(f) * self.fastest[f] / unit for f in sorted(set(flows))]
            _add_row(solver, fixed / unit, infinity, index, [1.0, *times])
        for share in FIRST_CUTS:
            for f in self.sending:
                self._cut_message(solver, f, share)

    def _cut(self, solver: highspy.Highs, shares: FloatArray) -> None:
        for f in self.sending:
            self._cut_message(solver, f, float(shares[f]))
        if self.goal.spread_value > 0:
            use = self.use + self.share_use @ shares
            gap = np.where(self.counted, use - use[self.counted].sum() / self.count, 0.0)
            size = float(np.sqrt((gap @ gap) * self.count))
            if size > 0:
                slope = gap / size
                row = [*(-(slope @ self.share_use)).tolist(), 1.0]
                index = [*range(self.flows), self.spread]
                _add_row(solver, float(slope @ self.use), solver.getInfinity(), index, row)

    def _cut_message(self, solver: highspy.Highs, flow: int, share: float) -> None:
        """``1/s >= 2/s0 - s/s0^2``, times ``s0``."""
        at = max(share, NARROWEST)
        index = [flow, self.column["message", flow]]
        _add_row(solver, 2.0, solver.getInfinity(), index, [1.0 / at, at])

    def _draw_nearer(self, solver: highspy.Highs, rates: FloatArray) -> None:
        """Takes from the limits what times exceed them by, at most half of them, where no cut does: the program may
        break rows by a tolerance that is as wide as ROUNDING, and below NARROWEST there are no cuts."""
        for name, time in self._times(rates).items():
            if time > self._limit(name):
                self.most[name] -= min(time - self._limit(name), 0.5 * self.most[name])
                solver.changeColBounds(self.column["class", name], 0.0, self.most[name] / self.unit[name])

    def _times(self, rates: FloatArray) -> dict[str, float]:
        """Request class -> ms; infinite where a flow that sends gets nothing."""
        took: dict[str, float] = {}
        for name, fixed, flows in self.chains:
            sent = [self.fastest[f] * float(self.scale[f] / rates[f]) if rates[f] > 0 else math.inf for f in flows]
            took[name] = max(took.get(name, 0.0), fixed + sum(sent))
        return took

    def _value(self, rates: FloatArray) -> float | None:
        """What the rates are worth; None where a time exceeds its limit."""
        value = float(self.goal.flow_value @ rates)
        if self.goal.spread_value > 0:
            use = (self.use + self.share_use @ (rates / self.scale))[self.counted]
            value -= self.goal.spread_value * (float(use.std()) if len(use) else 0.0)
        for name, time in self._times(rates).items():
            if not math.isfinite(time):
                return None
            if time > self.goal.time_limit.get(name, math.inf) * (1 + ROUNDING):
                return None
            value -= self.goal.time_value.get(name, 0.0) * time
        return value


def _add_row(solver: highspy.Highs, low: float, high: float, index: list[int], values: list[float]) -> None:
    solver.addRow(low, high, len(index), np.array(index, dtype=np.int32), np.array(values))
