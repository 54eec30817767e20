"""Rates for flows whose paths are known, in compiled code.

What is maximised is the part of the composite that rates decide, ``D - w3 * std(U_bandwidth)``: the satisfaction that a
rate buys against the imbalance that it causes. First the minimums are reserved; flows that meet no bottleneck get their
maximum; the others are served by how much satisfaction a unit of contended bandwidth buys (the better of two orders).
Then every rate in turn is set to its exact best while the others stand (:func:`_settle`); :func:`exchange` also shifts
bandwidth between two flows at once, which finds the optimum of most cases where flows compete for the same link.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

SWEEPS = 3
"""So often, at most, all rates are set anew; mostly the second sweep finds nothing more to do."""
WORTHWHILE = 1e-7
"""A change of a rate by less than this share of its range is none."""


class FillWork(NamedTuple):
    """Scratch space for one problem, R resources and F flows; valid for what the latest fill touched."""

    stamp: IntArray  # (R,) which fill wrote the entries of a resource
    touched: IntArray  # (R,) the resources of the latest fill
    counts: IntArray  # [number of the latest fill, how many resources it touched]
    left: FloatArray  # (R,) room that its rates leave
    wanted: FloatArray  # (R,) what all ranges would take on top of the minimums
    use: FloatArray  # (R,) utilisation of a link with its rates
    order: IntArray  # (F,)
    key: FloatArray  # (F,)
    extra: FloatArray  # (2, F)
    contended: NDArray[np.bool_]  # (F,)
    sums: FloatArray  # [sum of utilisations, sum of their squares] over all links


def fill_work(view: Compact) -> FillWork:
    resources, flows = len(view.room), len(view.low)
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


@compiled
def fill(view: Compact, work: FillWork, path: IntArray, rates: FloatArray) -> tuple[float, float]:
    """Sets ``rates`` (F,) for flows on ``path`` (F,). Returns (shortage, value).

    shortage: by how much the minimums exceed the room, as a share of all minimums; 0 where they fit.
    value: ``D - w3 * std``, meaningless where there is a shortage.
    """
    shortage = _reserve(view, work, path)
    if shortage > 0.0:
        return shortage, 0.0
    flows = len(path)
    for f in range(flows):
        rates[f] = view.high[f]
    if _mark_contended(view, work, path):
        _share(view, work, path, rates)
    else:
        for i in range(work.counts[1]):
            r = work.touched[i]
            work.left[r] -= work.wanted[r]
    _load(view, work, path, rates)
    _settle(view, work, path, rates)
    return 0.0, _value(view, work, rates)


@compiled
def _reserve(view: Compact, work: FillWork, path: IntArray) -> float:
    work.counts[0] += 1
    mark, touched = work.counts[0], 0
    for f in range(len(path)):
        q, span = path[f], view.high[f] - view.low[f]
        for i in range(view.path_first[q], view.path_first[q + 1]):
            r, times = view.path_resource[i], view.path_times[i]
            if work.stamp[r] != mark:
                work.stamp[r] = mark
                work.touched[touched] = r
                touched += 1
                work.left[r] = view.room[r]
                work.wanted[r] = 0.0
            work.left[r] -= times * view.low[f]
            work.wanted[r] += times * span
    work.counts[1] = touched
    over = 0.0
    for i in range(touched):
        if work.left[work.touched[i]] < 0.0:
            over -= work.left[work.touched[i]]
    if over > 0.0:
        asked = 0.0
        for f in range(len(path)):
            asked += view.low[f]
        return over / asked
    return 0.0


@compiled
def _mark_contended(view: Compact, work: FillWork, path: IntArray) -> bool:
    """Marks the flows that cross a resource which cannot give all that is wanted, and keys them by what they cost."""
    crowded = False
    for i in range(work.counts[1]):
        r = work.touched[i]
        if work.wanted[r] > work.left[r]:
            crowded = True
            break
    if not crowded:
        return False
    for f in range(len(path)):
        q, crossings = path[f], 0.0
        for i in range(view.path_first[q], view.path_first[q + 1]):
            r = view.path_resource[i]
            if work.wanted[r] > work.left[r]:
                crossings += view.path_times[i]
        span = view.high[f] - view.low[f]
        work.contended[f] = crossings > 0.0 and span > 0.0
        work.key[f] = crossings * span
    return True


@compiled
def _share(view: Compact, work: FillWork, path: IntArray, rates: FloatArray) -> None:
    """Rates of the contended flows, by the better of two orders; takes all rates from ``left``."""
    count = 0
    for f in range(len(path)):
        if work.contended[f]:
            work.order[count] = f
            count += 1
        else:
            _take(view, work, path[f], view.high[f] - view.low[f])
    best = -1.0
    chosen = 0
    for attempt in range(2):
        if attempt == 1:
            for i in range(count):
                f = work.order[i]
                work.key[f] = view.high[f] - view.low[f]
        if not _sorted_by_key(work, count) and attempt == 1:
            break
        gained = 0.0
        for i in range(count):
            f = work.order[i]
            span = view.high[f] - view.low[f]
            give = min(span, _room(view, work, path[f]))
            work.extra[attempt, f] = give
            gained += give / span
            _take(view, work, path[f], give)
        for i in range(count):
            _take(view, work, path[work.order[i]], -work.extra[attempt, work.order[i]])
        if gained > best:
            best, chosen = gained, attempt
    for i in range(count):
        f = work.order[i]
        give = work.extra[chosen, f]
        rates[f] = min(view.low[f] + give, view.high[f])
        _take(view, work, path[f], give)


@compiled
def _sorted_by_key(work: FillWork, count: int) -> bool:
    """Sorts the first ``count`` flows of ``order``; whether that changed anything."""
    changed = False
    for i in range(1, count):
        f = work.order[i]
        j = i - 1
        while j >= 0 and (
            work.key[work.order[j]] > work.key[f] or (work.key[work.order[j]] == work.key[f] and work.order[j] > f)
        ):
            work.order[j + 1] = work.order[j]
            j -= 1
            changed = True
        work.order[j + 1] = f
    return changed


@compiled
def _room(view: Compact, work: FillWork, q: int) -> float:
    room = math.inf
    for i in range(view.path_first[q], view.path_first[q + 1]):
        room = min(room, work.left[view.path_resource[i]] / view.path_times[i])
    return max(room, 0.0)


@compiled
def _take(view: Compact, work: FillWork, q: int, rate: float) -> None:
    for i in range(view.path_first[q], view.path_first[q + 1]):
        work.left[view.path_resource[i]] -= rate * view.path_times[i]


@compiled
def _load(view: Compact, work: FillWork, path: IntArray, rates: FloatArray) -> None:
    """Utilisations and their sums with these rates."""
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


@compiled
def _best_step(view: Compact, work: FillWork, gain: float, a1: float, b1: float, c1: float) -> float:
    """The step ``d`` that maximises ``gain * d - w3 * std`` where a step changes the sum of utilisations by ``a1 * d``
    and the sum of squares by ``2 * b1 * d + c1 * d**2``: std is the root of a quadratic in d, so the maximum is known
    in closed form. May be infinite."""
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


@compiled
def _settle(view: Compact, work: FillWork, path: IntArray, rates: FloatArray) -> None:
    """Sets each rate to its best while the others stand, over and over until nothing moves."""
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
            step = min(step, view.high[f] - rates[f], _room(view, work, q))
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


@compiled
def _shift(view: Compact, work: FillWork, q: int, step: float) -> None:
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r = view.path_resource[i]
        work.left[r] -= step * view.path_times[i]
        work.use[r] += step * view.link_inverse[r]


@compiled
def _value(view: Compact, work: FillWork, rates: FloatArray) -> float:
    flows = len(rates)
    satisfied = 0.0
    for f in range(flows):
        span = view.high[f] - view.low[f]
        satisfied += (rates[f] - view.low[f]) / span if span > 0.0 else 1.0
    mean = work.sums[0] / view.link_count
    spread = math.sqrt(max(work.sums[1] / view.link_count - mean * mean, 0.0))
    value: float = (satisfied / flows if flows else 1.0) - view.weights[2] * spread
    return value


@compiled
def exchange(view: Compact, work: FillWork, path: IntArray, rates: FloatArray) -> float:
    """Shifts bandwidth between pairs of flows that share a full resource, after :func:`fill` of the same paths, until
    nothing is gained. Returns the value."""
    flows = len(path)
    for _ in range(SWEEPS):
        moved = False
        for f in range(flows):
            span_f = view.high[f] - view.low[f]
            if span_f <= 0.0 or rates[f] >= view.high[f]:
                continue
            for g in range(flows):
                span_g = view.high[g] - view.low[g]
                if g == f or span_g <= 0.0 or rates[g] <= view.low[g] or not _share_full(view, work, path[f], path[g]):
                    continue
                step = _exchange_step(view, work, path, rates, f, g)
                if step <= WORTHWHILE * min(span_f, span_g):
                    continue
                moved = True
                _shift(view, work, path[g], -step)
                _shift(view, work, path[f], step)
                rates[f] = min(rates[f] + step, view.high[f])
                rates[g] = max(rates[g] - step, view.low[g])
                _load(view, work, path, rates)
        if not moved:
            break
        _settle(view, work, path, rates)
    return _value(view, work, rates)


@compiled
def _share_full(view: Compact, work: FillWork, q: int, p: int) -> bool:
    """Whether some resource that both paths load has no room left."""
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r = view.path_resource[i]
        if work.left[r] > 1e-9 * view.room[r]:
            continue
        for j in range(view.path_first[p], view.path_first[p + 1]):
            if view.path_resource[j] == r:
                return True
    return False


@compiled
def _exchange_step(view: Compact, work: FillWork, path: IntArray, rates: FloatArray, f: int, g: int) -> float:
    """How much the rate of flow f should rise while that of g falls by as much."""
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
