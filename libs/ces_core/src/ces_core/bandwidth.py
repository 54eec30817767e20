"""Bandwidth for tasks that have their nodes: minimums first, then as much as the capacities let through.

:func:`fill` gives rates to flows whose paths are known; :func:`allocate` also chooses among equally short paths.
Whole-numbered problems stay exact: rates are sums and differences of the given numbers (halves and the like can
arise only where a path crosses a medium more than once), so rounding a rate down to a whole bit/s breaks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ces_core.objective import composite
from ces_core.paths import Path
from ces_core.problem import SLACK, Problem


@dataclass(frozen=True)
class Allocation:
    """Paths and rates of all flows, with the share of the composite that they decide (higher is better)."""

    paths: tuple[Path, ...]
    bandwidth: tuple[float, ...]
    value: float


def fill(problem: Problem, paths: Sequence[Path]) -> list[float] | None:
    """A rate for every flow on its path, or None where the minimums do not fit.

    Flows that meet no bottleneck get their maximum. The others are served by how much satisfaction a unit of contended
    bandwidth buys, each as far as its path allows; the better of two such orders is kept.
    """
    low, high = problem.flow_min.tolist(), problem.flow_max.tolist()
    free, capacity = problem.cluster.bandwidth_free, problem.cluster.bandwidth_capacity
    room = {r: float(free[r]) for path in paths for r, _ in path.loads}
    for f, path in enumerate(paths):
        for r, times in path.loads:
            room[r] -= times * low[f]
    for r, left in room.items():
        if left < 0.0:
            if left < -SLACK * float(capacity[r]):
                return None
            room[r] = 0.0
    wanted = dict.fromkeys(room, 0.0)
    for f, path in enumerate(paths):
        for r, times in path.loads:
            wanted[r] += times * (high[f] - low[f])
    rates = list(high)
    contended: list[tuple[int, float]] = []
    for f, path in enumerate(paths):
        crossings = sum(times for r, times in path.loads if wanted[r] > room[r])
        if crossings and high[f] > low[f]:
            contended.append((f, crossings * (high[f] - low[f])))
    if not contended:
        return rates
    # Rates that meet no bottleneck are settled: what they take is gone before the others are served.
    served = {f for f, _ in contended}
    for f, path in enumerate(paths):
        if f not in served:
            for r, times in path.loads:
                room[r] -= times * (high[f] - low[f])
    by_cost = [f for f, _ in sorted(contended, key=lambda item: (item[1], item[0]))]
    by_range = sorted(served, key=lambda f: (high[f] - low[f], f))
    best = -1.0
    for order in (by_cost,) if by_cost == by_range else (by_cost, by_range):
        extra, gained = _serve(order, paths, low, high, dict(room))
        if gained > best:
            best = gained
            for f in order:
                rates[f] = low[f] + extra[f] if low[f] + extra[f] < high[f] else high[f]
    return rates


def _serve(
    order: Sequence[int], paths: Sequence[Path], low: list[float], high: list[float], room: dict[int, float]
) -> tuple[dict[int, float], float]:
    extra: dict[int, float] = {}
    gained = 0.0
    for f in order:
        span = high[f] - low[f]
        give = max(0.0, min(span, min(room[r] / times for r, times in paths[f].loads)))
        extra[f] = give
        gained += give / span
        for r, times in paths[f].loads:
            room[r] -= times * give
    return extra, gained


def complete(problem: Problem, assignment: Sequence[int]) -> Allocation | None:
    """Paths and rates for tasks that have their nodes (``assignment[t]``: an index in the cluster).

    None where no choice of paths was found that carries every minimum.
    """
    room = problem.cluster.bandwidth_free.tolist()
    start: list[Path | None] = [None] * len(problem.flows)
    ends = problem.flow_ends(assignment)
    for f in sorted(range(len(ends)), key=lambda f: -float(problem.flow_min[f])):
        ties = problem.routes.between(*ends[f])
        if not ties:
            return None
        best = max(ties, key=lambda path: min((room[r] / times for r, times in path.loads), default=math.inf))
        for r, times in best.loads:
            room[r] -= times * float(problem.flow_min[f])
        start[f] = best
    return allocate(problem, assignment, [path for path in start if path is not None])


class LinkSpread:
    """The bandwidth term of L for one cluster and basis, from sums, so that a candidate costs only its own links."""

    def __init__(self, problem: Problem) -> None:
        cluster = problem.cluster
        there = cluster.link_capacity > 0
        self._capacity = cluster.link_capacity
        self._used = cluster.link_used if problem.basis == "system" else cluster.link_used * 0
        self._count = int(there.sum())
        use = self._used[there] / self._capacity[there]
        self._sum, self._squares = float(use.sum()), float(use @ use)

    def __call__(self, paths: Sequence[Path], rates: Sequence[float]) -> float:
        added: dict[int, float] = {}
        for path, rate in zip(paths, rates, strict=True):
            for link in path.links:
                added[link] = added.get(link, 0.0) + rate
        total, squares = self._sum, self._squares
        for link, rate in added.items():
            capacity = float(self._capacity[link])
            if capacity > 0:
                more, before = rate / capacity, float(self._used[link]) / capacity
                total += more
                squares += more * (2 * before + more)
        if not self._count:
            return 0.0
        return math.sqrt(max(0.0, squares / self._count - (total / self._count) ** 2))


def allocate(
    problem: Problem, assignment: Sequence[int], start: Sequence[Path], spread: LinkSpread | None = None
) -> Allocation | None:
    """Fill, then move one flow at a time to another of its equally short paths while that helps.

    ``start`` holds a path per flow. None where the minimums do not fit on the starting paths.
    """
    spread = spread or LinkSpread(problem)
    low, high = problem.flow_min.tolist(), problem.flow_max.tolist()
    weight = problem.weights[2]

    def valued(paths: list[Path]) -> tuple[list[float], float] | None:
        rates = fill(problem, paths)
        if rates is None:
            return None
        got = sum(1.0 if high[f] == low[f] else (rates[f] - low[f]) / (high[f] - low[f]) for f in range(len(rates)))
        satisfaction = got / len(rates) if rates else 1.0
        return rates, composite(weight * spread(paths, rates), satisfaction)

    paths = list(start)
    now = valued(paths)
    if now is None:
        return None
    rates, value = now
    between = problem.routes.between
    choices = [between(*ends) for ends in problem.flow_ends(assignment)]
    improved = True
    while improved:
        improved = False
        for f, ties in enumerate(choices):
            if len(ties) < 2:
                continue
            for path in ties:
                if path is paths[f]:
                    continue
                before, paths[f] = paths[f], path
                other = valued(paths)
                if other is None or other[1] <= value + 1e-12:
                    paths[f] = before
                else:
                    rates, value = other
                    improved = True
    return Allocation(tuple(paths), tuple(rates), value)
