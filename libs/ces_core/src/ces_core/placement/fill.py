"""Rates for flows whose paths are fixed, in compiled code.

The objective is the part of the composite that depends on rates, ``D - w3 * std(U_bandwidth)``: satisfaction minus the
imbalance of the links. Minimums are reserved first. Flows without a bottleneck get their maximum; the others are served
in order of satisfaction gained per unit of contended bandwidth, using the better of two orders. Coordinate ascent then
sets every rate to its exact optimum with the others fixed (:func:`~ces_core.placement.exchange.coordinate_ascent`), and
:func:`~ces_core.placement.exchange.exchange` shifts bandwidth between pairs of flows, which finds the optimum in most
cases where flows compete for one link.
"""

from __future__ import annotations

from ces_core.compiled.jit import compiled, inner
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.exchange import coordinate_ascent, exchange
from ces_core.placement.rates import FillWork, fill_work, fill_work_of, load, residual_on, take, value_of
from ces_core.placement.view import ProblemView

__all__ = ["FillWork", "exchange", "fill", "fill_work", "fill_work_of"]


@compiled
def fill(view: ProblemView, work: FillWork, path: IntArray, rates: FloatArray) -> tuple[float, float]:
    """Sets ``rates`` (F,) for flows on ``path`` (F,). Returns (shortage, value).

    shortage: the excess of the minimums over the residual capacity, as a share of all minimums; 0 where they fit.
    value: ``D - w3 * std``, undefined where there is a shortage.
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
    load(view, work, path, rates)
    coordinate_ascent(view, work, path, rates)
    return 0.0, value_of(view, work, rates)


@inner
def _reserve(view: ProblemView, work: FillWork, path: IntArray) -> float:
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
                work.left[r] = view.residual[r]
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


@inner
def _mark_contended(view: ProblemView, work: FillWork, path: IntArray) -> bool:
    """Marks flows that cross a resource whose demand exceeds its capacity, and sets their sort keys. Returns whether
    there is such a resource."""
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


@inner
def _share(view: ProblemView, work: FillWork, path: IntArray, rates: FloatArray) -> None:
    """Sets the rates of contended flows, using the better of two orders, and subtracts all rates from ``left``."""
    count = 0
    for f in range(len(path)):
        if work.contended[f]:
            work.order[count] = f
            count += 1
        else:
            take(view, work, path[f], view.high[f] - view.low[f])
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
            give = min(span, residual_on(view, work, path[f]))
            work.extra[attempt, f] = give
            gained += give / span
            take(view, work, path[f], give)
        for i in range(count):
            take(view, work, path[work.order[i]], -work.extra[attempt, work.order[i]])
        if gained > best:
            best, chosen = gained, attempt
    for i in range(count):
        f = work.order[i]
        give = work.extra[chosen, f]
        rates[f] = min(view.low[f] + give, view.high[f])
        take(view, work, path[f], give)


@inner
def _sorted_by_key(work: FillWork, count: int) -> bool:
    """Sorts the first ``count`` flows of ``order`` by key, then index (Shell sort with Knuth's gaps). Returns whether
    the order changed."""
    changed = False
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            f = work.order[i]
            j = i - gap
            while j >= 0 and (
                work.key[work.order[j]] > work.key[f] or (work.key[work.order[j]] == work.key[f] and work.order[j] > f)
            ):
                work.order[j + gap] = work.order[j]
                j -= gap
                changed = True
            work.order[j + gap] = f
        gap //= 3
    return changed
