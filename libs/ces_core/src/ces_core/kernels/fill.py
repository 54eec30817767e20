"""Rates for flows whose paths are known, in compiled code.

What is maximised is the part of the composite that rates decide, ``D - w3 * std(U_bandwidth)``: the satisfaction that a
rate buys against the imbalance that it causes. First the minimums are reserved; flows that meet no bottleneck get their
maximum; the others are served by how much satisfaction a unit of contended bandwidth buys (the better of two orders).
Then every rate in turn is set to its exact best while the others stand (:func:`~ces_core.kernels.settle.settle`);
:func:`~ces_core.kernels.settle.exchange` also shifts bandwidth between two flows at once, which finds the optimum of
most cases where flows compete for the same link.
"""

from __future__ import annotations

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled, inner
from ces_core.kernels.rates import FillWork, fill_work, fill_work_of, load, room_on, take, value_of
from ces_core.kernels.settle import exchange, settle
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

__all__ = ["FillWork", "exchange", "fill", "fill_work", "fill_work_of"]


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
    load(view, work, path, rates)
    settle(view, work, path, rates)
    return 0.0, value_of(view, work, rates)


@inner
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


@inner
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


@inner
def _share(view: Compact, work: FillWork, path: IntArray, rates: FloatArray) -> None:
    """Rates of the contended flows, by the better of two orders; takes all rates from ``left``."""
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
            give = min(span, room_on(view, work, path[f]))
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
    """Sorts the first ``count`` flows of ``order`` by key, then number (Shell's way, by Knuth's gaps); whether that
    changed anything."""
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
