"""Rates of flows on fixed paths: their use of links and media, and their value."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled, inner
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.view import ProblemView


class FillWork(NamedTuple):
    """Scratch space for one problem with R resources and F flows; entries are valid only for resources touched by the
    latest fill."""

    stamp: IntArray  # (R,) which fill wrote the entries of a resource
    touched: IntArray  # (R,) the resources of the latest fill
    counts: IntArray  # [number of the latest fill, how many resources it touched]
    left: FloatArray  # (R,) capacity left by its rates
    wanted: FloatArray  # (R,) demand of all flows beyond their minimums
    use: FloatArray  # (R,) utilisation of a link with its rates
    order: IntArray  # (F,)
    key: FloatArray  # (F,)
    extra: FloatArray  # (2, F)
    contended: BoolArray  # (F,)
    sums: FloatArray  # [sum of utilisations, sum of their squares] over all links


@compiled
def fill_work(view: ProblemView) -> FillWork:
    """Scratch space for the problem."""
    return fill_work_of(len(view.residual), len(view.low))


@compiled
def fill_work_of(resources: int, flows: int) -> FillWork:
    """Scratch space for a number of resources and flows."""
    return FillWork(
        stamp=np.zeros(resources, dtype=np.int64),
        touched=np.zeros(resources, dtype=np.int64),
        counts=np.zeros(2, dtype=np.int64),
        left=np.zeros(resources),
        wanted=np.zeros(resources),
        use=np.zeros(resources),
        order=np.zeros(flows, dtype=np.int64),
        key=np.zeros(flows),
        extra=np.zeros((2, flows)),
        contended=np.zeros(flows, dtype=np.bool_),
        sums=np.zeros(2),
    )


@inner
def residual_on(view: ProblemView, work: FillWork, q: int) -> float:
    """Residual capacity of path ``q``, at least zero."""
    residual = math.inf
    for i in range(view.path_first[q], view.path_first[q + 1]):
        residual = min(residual, work.left[view.path_resource[i]] / view.path_times[i])
    return max(residual, 0.0)


@inner
def take(view: ProblemView, work: FillWork, q: int, rate: float) -> None:
    """Subtracts ``rate`` from the residual capacity along path ``q``."""
    for i in range(view.path_first[q], view.path_first[q + 1]):
        work.left[view.path_resource[i]] -= rate * view.path_times[i]


@inner
def load(view: ProblemView, work: FillWork, path: IntArray, rates: FloatArray) -> None:
    """Recomputes utilisations and their sums for these rates."""
    for i in range(work.counts[1]):
        r = work.touched[i]
        work.use[r] = view.link_use[r]
    for f in range(len(path)):
        q = path[f]
        for i in range(view.path_first[q], view.path_first[q + 1]):
            r = view.path_resource[i]
            work.use[r] += rates[f] * view.link_inverse[r]
    total, squares = view.link_sum, view.link_squares
    for i in range(work.counts[1]):
        r = work.touched[i]
        before, now = view.link_use[r], work.use[r]
        total += now - before
        squares += (now - before) * (now + before)
    work.sums[0] = total
    work.sums[1] = squares


@inner
def value_of(view: ProblemView, work: FillWork, rates: FloatArray) -> float:
    """``D - w3 * std`` for these rates."""
    flows = len(rates)
    satisfied = 0.0
    for f in range(flows):
        span = view.high[f] - view.low[f]
        satisfied += (rates[f] - view.low[f]) / span if span > 0.0 else 1.0
    mean = work.sums[0] / view.link_count
    spread = math.sqrt(max(work.sums[1] / view.link_count - mean * mean, 0.0))
    value: float = (satisfied / flows if flows else 1.0) - view.weights[2] * spread
    return value
