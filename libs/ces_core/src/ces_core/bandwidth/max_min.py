"""Max-min fairness: no flow's rate can rise without lowering one that is no better off.

Progressive filling (Bertsekas and Gallager, *Data Networks*, 6.5.2) with a floor and a ceiling per flow: a common level
rises and every flow follows it between its minimum and its maximum; flows that cross a full link or medium stop. Levels
are computed directly, not in steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ces_core.model.path import Path
from ces_core.model.problem import SLACK, Problem

_Share = tuple[float, float, float]  # crossings, minimum and maximum of a flow


def max_min_fair(problem: Problem, paths: Sequence[Path], *, minimums: bool = True) -> list[float] | None:
    """A rate for every flow on its path, in the problem's units; None where the minimums do not fit.

    ``minimums``: False lets rates start at zero, as without reservations. Flows within a node get their maximum.
    """
    low = problem.flow_min.tolist() if minimums else [0.0] * len(paths)
    high = problem.flow_max.tolist()
    free, capacity = problem.cluster.bandwidth_free, problem.cluster.bandwidth_capacity
    crossing: dict[int, dict[int, int]] = {}
    for f, path in enumerate(paths):
        for r, times in path.loads:
            crossing.setdefault(r, {})[f] = times
    residual = {r: float(free[r]) for r in crossing}
    for r, flows in crossing.items():
        if sum(times * low[f] for f, times in flows.items()) > residual[r] + SLACK * float(capacity[r]):
            return None
    rates = list(high)
    while crossing:
        levels = {
            r: _level(residual[r], [(times, low[f], high[f]) for f, times in flows.items()])
            for r, flows in crossing.items()
        }
        tight = min(levels, key=lambda r: (levels[r], r))
        if math.isinf(levels[tight]):
            break
        for f in list(crossing[tight]):
            rates[f] = min(max(levels[tight], low[f]), high[f])
            for r, times in paths[f].loads:
                residual[r] -= times * rates[f]
                del crossing[r][f]
        crossing = {r: flows for r, flows in crossing.items() if flows}
    return rates


def _level(residual: float, shares: list[_Share]) -> float:
    """The highest level at which ``shares`` fit into ``residual``; infinite where even their maximums fit."""
    load = sum(times * low for times, low, _ in shares)
    if sum(times * high for times, _, high in shares) <= residual:
        return math.inf
    turns = sorted(turn for times, low, high in shares for turn in ((low, times), (high, -times)))
    level = slope = 0.0
    for at, change in turns:
        more = slope * (at - level)
        if more > 0 and load + more > residual:
            return level + max(0.0, residual - load) / slope
        load += more
        level = at
        slope += change
    return level
