"""Bandwidth for a finished placement, by the rules that the baselines differ in.

:func:`fill` is the step that all solvers share, so that a comparison is about placement. The others are what some
systems do instead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ces_core.bandwidth import complete
from ces_core.fair import max_min_fair
from ces_core.paths import Path
from ces_core.problem import SLACK, Problem


class Given(NamedTuple):
    """What every flow got."""

    paths: tuple[Path, ...]
    rates: tuple[float, ...]


class Shortfall(NamedTuple):
    """A flow that missed its minimum, and what it found; without a flow where none can be singled out."""

    flow: int | None = None
    found: float = 0.0


Served = Given | Shortfall
Step = Callable[[Problem, Sequence[int], np.random.Generator], Served]
"""Paths and rates for tasks on these nodes; chance, for the rules that draw."""


def fill(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
    """The common step: paths chosen and rates filled by :func:`ces_core.bandwidth.complete`."""
    found = complete(problem, assignment)
    return Given(found.paths, found.bandwidth) if found is not None else _shortfall(problem, assignment)


def fair(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
    """The common step's paths; on them max-min fair rates, with the minimums reserved."""
    found = complete(problem, assignment)
    rates = None if found is None else max_min_fair(problem, found.paths)
    if found is None or rates is None:
        return _shortfall(problem, assignment)
    return Given(found.paths, tuple(rates))


def unreserved(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
    """What flows get where nobody reserves: each takes the first of its shortest paths, as a routing table would, is
    capped at its maximum by a static limit, and shares what the links have left max-min fairly, as long transport
    connections roughly do. A flow that ends below its minimum is a shortfall."""
    paths: list[Path] = []
    for f, ends in enumerate(problem.flow_ends(assignment)):
        ties = problem.routes.between(*ends)
        if not ties:
            return Shortfall(f)
        paths.append(ties[0])
    rates = max_min_fair(problem, paths, minimums=False) or []
    worst, share = None, 1.0 - 1e-12
    for f, low in enumerate(problem.flow_min.tolist()):
        if low > 0 and rates[f] / low < share:
            worst, share = f, rates[f] / low
    return Given(tuple(paths), tuple(rates)) if worst is None else Shortfall(worst, rates[worst])


def by_importance(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
    """The common step's paths; on them rates by the importance of a flow's ends (thesis 4.3.1).

    Importance is the degree, in flows, of both ends together, relative to the most important flow. Every flow has its
    minimum; of the range up to its maximum it is meant to get the share that its importance is, the most important
    served first, as far as the links allow. What nobody is meant to get stays idle.
    """
    found = complete(problem, assignment)
    if found is None:
        return _shortfall(problem, assignment)
    return Given(found.paths, tuple(importance_rates(problem, found.paths)))


def importance_rates(problem: Problem, paths: Sequence[Path]) -> list[float]:
    """See :func:`by_importance`; ``paths`` must carry the minimums."""
    ends = list(zip(problem.flow_src.tolist(), problem.flow_dst.tolist(), strict=True))
    degree = Counter(end for pair in ends for end in pair)
    importance = [degree[src] + degree[dst] for src, dst in ends]
    low, high = problem.flow_min.tolist(), problem.flow_max.tolist()
    room = problem.cluster.bandwidth_free.tolist()
    for f, path in enumerate(paths):
        for r, times in path.loads:
            room[r] -= times * low[f]
    rates = list(high)
    for f in sorted(range(len(paths)), key=lambda f: (-importance[f], f)):
        loads = paths[f].loads
        if not loads:
            continue
        meant = (high[f] - low[f]) * importance[f] / max(importance)
        more = max(0.0, min(meant, *(room[r] / times for r, times in loads)))
        rates[f] = min(low[f] + more, high[f])
        for r, times in loads:
            room[r] -= times * more
    return rates


def random_levels(levels: int) -> Step:
    """One of the flow's paths and one of ``levels`` rates from minimum to maximum (thesis eq. 4-24), both drawn
    evenly, flow by flow. Where the path has less left than the level asks, the flow gets what is left, as long as that
    is its minimum."""

    def step(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
        room = problem.cluster.bandwidth_free.tolist()
        slack = (SLACK * problem.cluster.bandwidth_capacity).tolist()
        paths, rates = [], []
        for f, ends in enumerate(problem.flow_ends(assignment)):
            ties = problem.routes.between(*ends)
            if not ties:
                return Shortfall(f)
            path = ties[int(rng.integers(len(ties)))]
            low, high = float(problem.flow_min[f]), float(problem.flow_max[f])
            level = int(rng.integers(levels))
            left = min((room[r] / times for r, times in path.loads), default=math.inf)
            if any(times * low > room[r] + slack[r] for r, times in path.loads):
                return Shortfall(f, max(0.0, left))
            rate = max(low, min(low + level / (levels - 1) * (high - low), left))
            for r, times in path.loads:
                room[r] -= times * rate
            paths.append(path)
            rates.append(rate)
        return Given(tuple(paths), tuple(rates))

    return step


def _shortfall(problem: Problem, assignment: Sequence[int]) -> Shortfall:
    """Who is left without, where the minimums are served in order of size, each on its widest path."""
    room = problem.cluster.bandwidth_free.tolist()
    slack = (SLACK * problem.cluster.bandwidth_capacity).tolist()
    ends = problem.flow_ends(assignment)
    low = problem.flow_min.tolist()
    for f in sorted(range(len(ends)), key=lambda f: (-low[f], f)):
        found, best = -1.0, None
        for path in problem.routes.between(*ends[f]):
            width = min((room[r] / times for r, times in path.loads), default=math.inf)
            if width > found:
                found, best = width, path
        if best is None or any(times * low[f] > room[r] + slack[r] for r, times in best.loads):
            return Shortfall(f, max(0.0, found))
        for r, times in best.loads:
            room[r] -= times * low[f]
    return Shortfall()
