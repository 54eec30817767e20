"""Weighted max-min fairness: rates that no flow can raise without taking from one that is no better off.

Progressive filling (Bertsekas and Gallager, *Data Networks*, 6.5.2) with a floor and a ceiling per flow: a common level
rises, every flow follows it at its weight, from its minimum on and up to its maximum; where a link or medium is full,
the flows that cross it stay at what they have. The levels are found by arithmetic, not by steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ces_core.paths import Path
from ces_core.problem import SLACK, Problem

_Share = tuple[float, float, float, float]  # how often a flow crosses, its minimum, maximum and weight


def max_min_fair(
    problem: Problem, paths: Sequence[Path], *, weights: Sequence[float] | None = None, minimums: bool = True
) -> list[float] | None:
    """A rate for every flow on its path, in the problem's units; None where the minimums do not fit.

    ``weights``: one per flow, above zero (all 1 where None); a flow of weight 2 gets twice the rate of a flow of weight
    1 at the same bottleneck. ``minimums``: False lets rates start at zero, as they do where nothing is reserved.
    Flows within a node get their maximum. Raises ValueError for weights that make no sense.
    """
    count = len(paths)
    weight = [1.0] * count if weights is None else [float(value) for value in weights]
    if len(weight) != count or not all(value > 0 and math.isfinite(value) for value in weight):
        raise ValueError(f"weights must be {count} numbers above zero, not {weights!r}")
    low = problem.flow_min.tolist() if minimums else [0.0] * count
    high = problem.flow_max.tolist()
    free, capacity = problem.cluster.bandwidth_free, problem.cluster.bandwidth_capacity
    crossing: dict[int, dict[int, int]] = {}
    for f, path in enumerate(paths):
        for r, times in path.loads:
            crossing.setdefault(r, {})[f] = times
    room = {r: float(free[r]) for r in crossing}
    for r, flows in crossing.items():
        if sum(times * low[f] for f, times in flows.items()) > room[r] + SLACK * float(capacity[r]):
            return None
    rates = list(high)
    while crossing:
        levels = {
            r: _level(room[r], [(times, low[f], high[f], weight[f]) for f, times in flows.items()])
            for r, flows in crossing.items()
        }
        tight = min(levels, key=lambda r: (levels[r], r))
        if math.isinf(levels[tight]):
            break
        for f in list(crossing[tight]):
            rates[f] = min(max(levels[tight] * weight[f], low[f]), high[f])
            for r, times in paths[f].loads:
                room[r] -= times * rates[f]
                del crossing[r][f]
        crossing = {r: flows for r, flows in crossing.items() if flows}
    return rates


def _level(room: float, shares: list[_Share]) -> float:
    """The highest level at which ``shares`` still fit into ``room``; infinite where even their maximums do."""
    load = sum(times * low for times, low, _, _ in shares)
    turns = sorted(
        turn
        for times, low, high, weight in shares
        for turn in ((low / weight, times * weight), (high / weight, -times * weight))
    )
    if sum(times * high for times, _, high, _ in shares) <= room:
        return math.inf
    level = slope = 0.0
    for at, change in turns:
        more = slope * (at - level)
        if more > 0 and load + more > room:
            return level + max(0.0, room - load) / slope
        load += more
        level = at
        slope += change
    return level
