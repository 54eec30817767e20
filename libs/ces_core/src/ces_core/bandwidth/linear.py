"""Optimal bandwidth on given paths by linear programming, to the last digit.

For tasks whose nodes are fixed it computes the maximum of the bandwidth's part of the composite, 0.5*(1 -
w3*std(U_links)) + 0.5*D. A flow with several paths may split over them, which relaxes, and so bounds, what CES does.

The standard deviation is convex, so it is replaced by tangents, added cut by cut (J. E. Kelley, 1960). Each round also
cuts at a point between the best and the latest solution, which keeps the rounds few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from ces_core.bandwidth.highs import optimum, thread_solver
from ces_core.model.objective import composite
from ces_core.model.path import Path
from ces_core.model.problem import SLACK, FloatArray, Problem
from ces_core.model.topology import IntArray

ROUNDS = 200
"""Maximum rounds of cuts; each adds two."""
LARGEST_SHARE = 1e9
"""Maximum coefficient in the program: the solver refuses numbers above 1e15 and is exact far below that."""
TOLERANCE = 1e-11
"""Final gap between the value and its bound, unless the rounds run out."""


@dataclass(frozen=True, eq=False)
class Rates:
    """The solution. ``bandwidth[f]``: the rate of flow f over all of its paths. ``value``: the objective at these
    rates; ``bound``: its upper bound over all rates."""

    bandwidth: FloatArray
    satisfaction: float
    value: float
    bound: float


def best_value(problem: Problem, paths: Sequence[Sequence[Path]]) -> Rates | None:
    """Rates that maximise the bandwidth's part of the composite; ``paths[f]`` are the paths open to flow f. None where
    the minimums do not fit."""
    return _Program(problem, paths).run()


class _Program:
    """Variables: per flow and path the share of the flow's maximum, then w3*std. Rows: flows, resources, cuts."""

    def __init__(self, problem: Problem, paths: Sequence[Sequence[Path]]) -> None:
        cluster = problem.cluster
        self.weight = problem.weights[2]
        self.low, self.high = problem.flow_min, problem.flow_max
        flat = [path for ties in paths for path in ties]
        self.flow: IntArray = np.repeat(np.arange(len(paths)), [len(ties) for ties in paths]).astype(np.int64)
        self.column: IntArray = np.array([v for v, path in enumerate(flat) for _ in path.loads], dtype=np.int64)
        self.resource: IntArray = np.array([r for path in flat for r, _ in path.loads], dtype=np.int64)
        self.times: FloatArray = np.array([times for path in flat for _, times in path.loads], dtype=np.float64)
        self.empty = np.array([not path.loads for path in flat], dtype=np.bool_)
        self.residual: FloatArray = cluster.bandwidth_free + SLACK * cluster.bandwidth_capacity
        links = len(cluster.link_capacity)
        capacity = np.zeros(len(self.residual))
        capacity[:links] = cluster.link_capacity
        self.inverse = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0)
        self.counted = capacity > 0
        self.count = max(1, int(self.counted.sum()))
        used = cluster.link_used if problem.basis == "system" else np.zeros(links)
        self.use: FloatArray = np.concatenate([used, np.zeros(len(self.residual) - links)]) * self.inverse
        self.span = self.high - self.low
        self.scale = self.high[self.flow]
        flows = max(1, len(paths))
        worth = np.divide(1.0, self.span * flows, out=np.zeros_like(self.span), where=self.span > 0)
        self.worth = worth[self.flow] * self.scale  # of a whole share
        # Divisor of a resource's row: its capacity, unless that makes a coefficient huge.
        largest = np.zeros(len(self.residual))
        np.maximum.at(largest, self.resource, self.times * self.scale[self.column])
        wide = np.maximum(self.residual, largest / LARGEST_SHARE)
        self.wide: FloatArray = np.where(wide > 0, wide, 1.0)

    def run(self) -> Rates | None:
        solver, columns = thread_solver(), len(self.flow)
        if not self._load(solver):
            return None
        best: tuple[float, FloatArray] | None = None
        bound = np.inf
        for _ in range(ROUNDS):
            found = optimum(solver)
            if found is None:
                return None
            bound = min(bound, self._constant() - found.objective)
            shares = self._repaired(np.clip(found.columns[:columns], 0.0, 1.0))
            reached = self._goal(shares)
            if best is None or reached > best[0]:
                best = reached, shares
            if self.weight == 0 or bound - best[0] <= 2 * TOLERANCE:
                break
            for point in (shares, 0.5 * (shares + best[1])):
                self._cut(solver, point)
        if best is None:
            raise RuntimeError("the linear program was given no round")
        goal, shares = best
        bandwidth = np.bincount(self.flow, weights=shares * self.scale, minlength=len(self.low)).astype(np.float64)
        satisfaction = self._satisfaction(shares)
        return Rates(
            bandwidth=np.clip(bandwidth, self.low, self.high),
            satisfaction=satisfaction,
            value=composite(self.weight * self._spread(shares), satisfaction),
            bound=0.5 + 0.5 * max(goal, bound),
        )

    def _load(self, solver: highspy.Highs) -> bool:
        """Loads the program without cuts. Returns False where some flow has no path."""
        columns, flows, resources = len(self.flow), len(self.low), len(self.residual)
        if flows and (np.bincount(self.flow, minlength=flows) == 0).any():
            return False
        upper = np.ones(columns)
        blocked = self.residual[self.resource] <= 0.0
        upper[self.column[blocked]] = 0.0
        # Rows are scaled to 1, so that tolerances mean the same everywhere.
        high = np.where(self.high > 0, self.high, 1.0)
        wide = self.wide
        value = np.concatenate([np.ones(columns), self.times * self.scale[self.column] / wide[self.resource], [0.0]])
        index = np.concatenate([self.flow, flows + self.resource, [0]])
        owner = np.concatenate([np.arange(columns), self.column, [columns]])
        order = np.lexsort((index, owner))
        order = order[value[order] != 0.0]
        start = np.searchsorted(owner[order], np.arange(columns + 1))
        infinity = solver.getInfinity()
        status = solver.passModel(
            columns + 1,
            flows + resources,
            len(order),
            int(highspy.MatrixFormat.kColwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            np.concatenate([-self.worth, [1.0]]),
            np.zeros(columns + 1),
            np.concatenate([upper, [infinity]]),
            np.concatenate([self.low / high, np.full(resources, -infinity)]),
            np.concatenate([np.where(self.high > 0, 1.0, 0.0), np.maximum(self.residual, 0.0) / wide]),
            start.astype(np.int32),
            index[order].astype(np.int32),
            value[order],
            np.zeros(columns + 1, dtype=np.int32),
        )
        if status == highspy.HighsStatus.kError:
            raise RuntimeError("the linear program was refused")
        return True

    def _constant(self) -> float:
        """D if all shares were zero."""
        flows = max(1, len(self.low))
        share = np.divide(self.low, self.span, out=np.full_like(self.low, -1.0), where=self.span > 0)
        return 1.0 if not len(self.low) else float(-share.sum() / flows)

    def _satisfaction(self, shares: FloatArray) -> float:
        return min(1.0, self._constant() + float(self.worth @ shares))

    def _goal(self, shares: FloatArray) -> float:
        return self._satisfaction(shares) - self.weight * self._spread(shares)

    def _utilisation(self, shares: FloatArray) -> FloatArray:
        load = np.bincount(
            self.resource, weights=self.times * (self.scale * shares)[self.column], minlength=len(self.residual)
        )
        return self.use + load * self.inverse

    def _spread(self, shares: FloatArray) -> float:
        use = self._utilisation(shares)[self.counted]
        return float(use.std()) if len(use) else 0.0

    def _cut(self, solver: highspy.Highs, shares: FloatArray) -> None:
        """Adds w3*std >= w3*h.U, with h the tangent at ``shares``: of sum zero, and std(U) = h.U there."""
        use, columns = self._utilisation(shares), len(self.flow)
        gap = np.where(self.counted, use - use.sum() / self.count, 0.0)
        size = float(np.sqrt((gap @ gap) * self.count))
        slope = self.weight * (gap / size if size > 0 else np.zeros_like(gap))
        each = np.bincount(self.column, weights=(slope * self.inverse)[self.resource] * self.times, minlength=columns)
        row = np.concatenate([-each * self.scale, [1.0]])
        index = np.arange(columns + 1, dtype=np.int32)
        solver.addRow(float(slope @ self.use), solver.getInfinity(), columns + 1, index, row)

    def _repaired(self, shares: FloatArray) -> FloatArray:
        """The shares reduced to satisfy capacities exactly, which the solver may exceed by its tolerance."""
        rates = shares * self.scale
        total = np.bincount(self.flow, weights=rates, minlength=len(self.low))
        over = total > self.high
        if over.any():
            factor = np.where(over, self.high / np.where(over, total, 1.0), 1.0)
            rates = rates * factor[self.flow]
        load = np.bincount(self.resource, weights=self.times * rates[self.column], minlength=len(self.residual))
        for r in np.flatnonzero(load > self.residual).tolist():
            here = self.column[self.resource == r]
            times = self.times[self.resource == r]
            excess = float(times @ rates[here]) - float(self.residual[r])
            total = np.bincount(self.flow, weights=rates, minlength=len(self.low))
            spare = np.minimum(rates[here], np.maximum(total - self.low, 0.0)[self.flow[here]])
            if excess > 0 and float(times @ spare) > 0:
                rates[here] -= spare * min(1.0, excess / float(times @ spare))
        return np.divide(rates, self.scale, out=np.zeros_like(rates), where=self.scale > 0)
