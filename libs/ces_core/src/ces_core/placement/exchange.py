"""Improvement of given rates: coordinate ascent, one rate at a time, then exchange of bandwidth between pairs of
flows."""

from __future__ import annotations

import math

from ces_core.compiled.jit import compiled, inner
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.rates import FillWork, load, residual_on, value_of
from ces_core.placement.view import ProblemView

SWEEPS = 3
"""Maximum number of sweeps over all rates; mostly the second changes nothing."""
WORTHWHILE = 1e-7
"""Changes below this share of a rate's range are ignored."""
FULL = 1e-9
"""A resource is full if less than this share of its residual capacity is left."""
PAIRS = 2000
"""Maximum number of flow pairs examined per sweep; jobs with hundreds of flows have too many."""


@inner
def coordinate_ascent(view: ProblemView, work: FillWork, path: IntArray, rates: FloatArray) -> None:
    """Sets each rate to its optimum with the others fixed, and repeats until no rate changes."""
    flows = len(path)
    for _ in range(SWEEPS):
        moved = False
        for f in range(flows):
            q, span = path[f], view.high[f] - view.low[f]
            first, last = view.path_first[q], view.path_first[q + 1]
            if span <= 0.0 or first == last:
                continue
            a1 = b1 = c1 = 0.0
            for i in range(first, last):
                inverse = view.link_inverse[view.path_resource[i]]
                a1 += inverse
                b1 += inverse * work.use[view.path_resource[i]]
                c1 += inverse * inverse
            step = _best_step(view, work, 1.0 / (flows * span), a1, b1, c1)
            step = min(step, view.high[f] - rates[f], residual_on(view, work, q))
            step = max(step, view.low[f] - rates[f])
            if abs(step) <= WORTHWHILE * span:
                continue
            moved = True
            _shift(view, work, q, step)
            rates[f] = min(max(rates[f] + step, view.low[f]), view.high[f])
            work.sums[0] += a1 * step
            work.sums[1] += 2.0 * b1 * step + c1 * step * step
        if not moved:
            break


@inner
def _best_step(view: ProblemView, work: FillWork, gain: float, a1: float, b1: float, c1: float) -> float:
    """The step ``d`` that maximises ``gain * d - w3 * std``, possibly infinite. A step changes the sum of utilisations
    by ``a1 * d`` and the sum of squares by ``2 * b1 * d + c1 * d**2``, so std is the root of a quadratic in d and the
    maximum has a closed form."""
    count, weight = view.link_count, view.weights[2]
    total, squares = work.sums[0], work.sums[1]
    variance = max(squares / count - (total / count) ** 2, 0.0)
    slope = b1 / count - total * a1 / (count * count)
    curve = c1 / count - a1 * a1 / (count * count)
    if curve <= 1e-300 or weight <= 0.0:
        rise = gain - (weight * slope / math.sqrt(variance) if variance > 0.0 and weight > 0.0 else 0.0)
        return math.inf if rise > 0.0 else (-math.inf if rise < 0.0 else 0.0)
    steepness = weight * weight - gain * gain / curve
    if steepness <= 0.0:
        return math.inf if gain > 0.0 else -math.inf
    rest = max(variance - slope * slope / curve, 0.0)
    step: float = (gain * math.sqrt(rest / steepness) - slope) / curve
    return step


@inner
def _shift(view: ProblemView, work: FillWork, q: int, step: float) -> None:
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r = view.path_resource[i]
        work.left[r] -= step * view.path_times[i]
        work.use[r] += step * view.link_inverse[r]


@compiled
def exchange(view: ProblemView, work: FillWork, path: IntArray, rates: FloatArray) -> float:
    """Shifts bandwidth between pairs of flows that share a full resource until nothing is gained. Must follow a fill of
    the same paths; returns the value."""
    flows = len(path)
    for _ in range(SWEEPS):
        moved = False
        squeezed = 0
        for f in range(flows):
            if view.high[f] > view.low[f] and _meets_full(view, work, path[f]):
                work.order[squeezed] = f
                squeezed += 1
        pairs = 0
        for i in range(squeezed):
            f = work.order[i]
            if rates[f] >= view.high[f]:
                continue
            for j in range(squeezed):
                g = work.order[j]
                if g == f or rates[g] <= view.low[g]:
                    continue
                pairs += 1
                if not _share_full(view, work, path[f], path[g]):
                    continue
                step = _exchange_step(view, work, path, rates, f, g)
                if step <= WORTHWHILE * min(view.high[f] - view.low[f], view.high[g] - view.low[g]):
                    continue
                moved = True
                _shift(view, work, path[g], -step)
                _shift(view, work, path[f], step)
                rates[f] = min(rates[f] + step, view.high[f])
                rates[g] = max(rates[g] - step, view.low[g])
                load(view, work, path, rates)
            if pairs > PAIRS:
                break
        if not moved:
            break
        coordinate_ascent(view, work, path, rates)
    return value_of(view, work, rates)


@inner
def _meets_full(view: ProblemView, work: FillWork, q: int) -> bool:
    """Whether the path uses a full resource."""
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r = view.path_resource[i]
        if work.left[r] <= FULL * view.residual[r]:
            return True
    return False


@inner
def _share_full(view: ProblemView, work: FillWork, q: int, p: int) -> bool:
    """Whether both paths use the same full resource."""
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r = view.path_resource[i]
        if work.left[r] > FULL * view.residual[r]:
            continue
        for j in range(view.path_first[p], view.path_first[p + 1]):
            if view.path_resource[j] == r:
                return True
    return False


@inner
def _exchange_step(view: ProblemView, work: FillWork, path: IntArray, rates: FloatArray, f: int, g: int) -> float:
    """How much to raise the rate of flow f while lowering that of flow g by the same amount."""
    q, p = path[f], path[g]
    limit = min(view.high[f] - rates[f], rates[g] - view.low[g])
    a1 = b1 = c1 = 0.0
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r, times = view.path_resource[i], view.path_times[i]
        inverse = view.link_inverse[r]
        for j in range(view.path_first[p], view.path_first[p + 1]):
            if view.path_resource[j] == r:
                times -= view.path_times[j]
                inverse = 0.0
                break
        if times > 0.0:
            limit = min(limit, max(work.left[r], 0.0) / times)
        a1 += inverse
        b1 += inverse * work.use[r]
        c1 += inverse * inverse
    for j in range(view.path_first[p], view.path_first[p + 1]):
        r = view.path_resource[j]
        inverse = view.link_inverse[r]
        for i in range(view.path_first[q], view.path_first[q + 1]):
            if view.path_resource[i] == r:
                inverse = 0.0
                break
        a1 -= inverse
        b1 -= inverse * work.use[r]
        c1 += inverse * inverse
    flows = len(path)
    gain = 1.0 / (flows * (view.high[f] - view.low[f])) - 1.0 / (flows * (view.high[g] - view.low[g]))
    step: float = max(0.0, min(limit, _best_step(view, work, gain, a1, b1, c1)))
    return step
