"""The bandwidth rules of the baselines, for a finished placement.

:func:`fill` is the step that all solvers share, so that a comparison is about placement. The others are what some
systems do instead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ces_core.bandwidth.composite import Allocation, complete
from ces_core.bandwidth.max_min import max_min_fair
from ces_core.model.path import Path
from ces_core.model.problem import SLACK, Problem
from ces_core.network.cache import paths_for


class Shortfall(NamedTuple):
    """A flow that missed its minimum, and what it found; no flow if none can be singled out."""

    flow: int | None = None
    found: float = 0.0


Served = Allocation | Shortfall
Step = Callable[[Problem, Sequence[int], np.random.Generator], Served]
"""A bandwidth rule: paths and rates for tasks on these nodes; the generator is for rules that draw at random."""


def fill(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
    """The common step: paths and rates by :func:`ces_core.bandwidth.composite.complete`."""
    return complete(problem, assignment) or _shortfall(problem, assignment)


def fair(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
    """Max-min fair rates on the common step's paths, with the minimums reserved."""
    found = complete(problem, assignment)
    rates = None if found is None else max_min_fair(problem, found.paths)
    if found is None or rates is None:
        return _shortfall(problem, assignment)
    return Allocation(found.paths, tuple(rates))


def best_effort(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
    """Rates without reservations: each flow takes its first shortest path, as a routing table would, is capped at its
    maximum, and shares the remaining bandwidth max-min fairly, roughly as long-lived transport connections do. A flow
    that ends below its minimum is a shortfall."""
    paths: list[Path] = []
    for f, ends in enumerate(problem.flow_ends(assignment)):
        ties = paths_for(problem).between(*ends)
        if not ties:
            return Shortfall(f)
        paths.append(ties[0])
    rates = max_min_fair(problem, paths, minimums=False) or []
    worst, share = None, 1.0 - 1e-12
    for f, low in enumerate(problem.flow_min.tolist()):
        if low > 0 and rates[f] / low < share:
            worst, share = f, rates[f] / low
    return Allocation(tuple(paths), tuple(rates)) if worst is None else Shortfall(worst, rates[worst])


def by_importance(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
    """Rates by the importance of a flow's ends, on the common step's paths (thesis 4.3.1).

    Importance is the degree, in flows, of both ends together, relative to the most important flow. Every flow has its
    minimum; of its range up to the maximum it is entitled to the share given by its importance. The most important flow
    is served first, as far as links allow; bandwidth that nobody is entitled to stays idle.
    """
    found = complete(problem, assignment)
    if found is None:
        return _shortfall(problem, assignment)
    return Allocation(found.paths, tuple(importance_rates(problem, found.paths)))


def importance_rates(problem: Problem, paths: Sequence[Path]) -> list[float]:
    """The rates of :func:`by_importance`; ``paths`` must carry the minimums."""
    ends = list(zip(problem.flow_src.tolist(), problem.flow_dst.tolist(), strict=True))
    degree = Counter(end for pair in ends for end in pair)
    importance = [degree[src] + degree[dst] for src, dst in ends]
    low, high = problem.flow_min.tolist(), problem.flow_max.tolist()
    residual = problem.cluster.bandwidth_free.tolist()
    for f, path in enumerate(paths):
        for r, times in path.loads:
            residual[r] -= times * low[f]
    rates = list(high)
    for f in sorted(range(len(paths)), key=lambda f: (-importance[f], f)):
        loads = paths[f].loads
        if not loads:
            continue
        meant = (high[f] - low[f]) * importance[f] / max(importance)
        more = max(0.0, min(meant, *(residual[r] / times for r, times in loads)))
        rates[f] = min(low[f] + more, high[f])
        for r, times in loads:
            residual[r] -= times * more
    return rates


def random_levels(levels: int) -> Step:
    """A rule that draws for each flow one of its paths and one of ``levels`` rates from minimum to maximum (thesis eq.
    4-24), both uniformly. If the path has less left than the drawn level, the flow gets the rest, as long as this is
    its minimum."""

    def step(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
        residual = problem.cluster.bandwidth_free.tolist()
        slack = (SLACK * problem.cluster.bandwidth_capacity).tolist()
        paths, rates = [], []
        for f, ends in enumerate(problem.flow_ends(assignment)):
            ties = paths_for(problem).between(*ends)
            if not ties:
                return Shortfall(f)
            path = ties[int(rng.integers(len(ties)))]
            low, high = float(problem.flow_min[f]), float(problem.flow_max[f])
            level = int(rng.integers(levels))
            left = min((residual[r] / times for r, times in path.loads), default=math.inf)
            if any(times * low > residual[r] + slack[r] for r, times in path.loads):
                return Shortfall(f, max(0.0, left))
            rate = max(low, min(low + level / (levels - 1) * (high - low), left))
            for r, times in path.loads:
                residual[r] -= times * rate
            paths.append(path)
            rates.append(rate)
        return Allocation(tuple(paths), tuple(rates))

    return step


def _shortfall(problem: Problem, assignment: Sequence[int]) -> Shortfall:
    """The flow left without its minimum when minimums are served by falling size, each on its widest path."""
    residual = problem.cluster.bandwidth_free.tolist()
    slack = (SLACK * problem.cluster.bandwidth_capacity).tolist()
    ends = problem.flow_ends(assignment)
    low = problem.flow_min.tolist()
    for f in sorted(range(len(ends)), key=lambda f: (-low[f], f)):
        found, best = -1.0, None
        for path in paths_for(problem).between(*ends[f]):
            width = min((residual[r] / times for r, times in path.loads), default=math.inf)
            if width > found:
                found, best = width, path
        if best is None or any(times * low[f] > residual[r] + slack[r] for r, times in best.loads):
            return Shortfall(f, max(0.0, found))
        for r, times in best.loads:
            residual[r] -= times * low[f]
    return Shortfall()
