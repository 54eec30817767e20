"""A problem in the form used by the exact tree search: tasks in branching order, one level per decision.

The search proves bounds on an *anchored* objective Z' that never exceeds Z = L + (1 - D). Flow f on path P is anchored
at a = min(max, capacity of P on an idle network), which depends on nothing else. Since std is a seminorm, giving f less
than its anchor lowers w3*std(U_links) by at most w3*std(P's unit load) per unit of bandwidth (``eta``), while 1 - D
rises by ``worth``. So Z(rates) >= w3*std(U at anchors) + sum of worth*(max - a) - (eta - worth)^+ * (a - min), plus
(worth - eta)^+ times any shortfall below the anchor that capacities force.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.view import ProblemView

SETS = 1024
"""A node gets its sets of tasks listed only where there are no more than this; else its tasks count one by one."""


class Form(NamedTuple):
    """T tasks in branching order, F flows, C candidates, R resources of paths, Q paths, L = T + F levels."""

    order: IntArray  # (T,) index in the problem of each task here
    demand: FloatArray  # (T, 3)
    fits: BoolArray  # (T, C)
    more: FloatArray  # (2, T, C) utilisation that a task adds to a node
    free: FloatArray  # (3, C)
    use: FloatArray  # (2, C)
    node_count: FloatArray  # (2,)
    node_sum: FloatArray
    node_squares: FloatArray
    src: IntArray  # (F,) a task here, or -1 - c
    dst: IntArray
    low: FloatArray
    high: FloatArray
    worth: FloatArray  # (F,) what a unit of bandwidth adds to D; 0 where max = min
    pair_first: IntArray
    path_first: IntArray
    resource: IntArray
    times: FloatArray
    kappa: FloatArray  # (Q,) sum of 1/capacity along the path
    kappa2: FloatArray  # (Q,) sum of 1/capacity^2
    eta: FloatArray  # (Q,) w3 * std of the path's unit load
    width: FloatArray  # (Q,) capacity of the path on an idle network
    residual: FloatArray  # (R,)
    link_use: FloatArray  # (R,)
    inverse: FloatArray  # (R,)
    link_count: float
    link_sum: float
    link_squares: float
    weights: FloatArray
    level_task: IntArray  # (L,) task placed at this level, or -1
    level_flow: IntArray  # (L,) flow routed at this level, or -1
    level_last: IntArray  # (L,) latest task placed at or before this level, or -1
    twin: IntArray  # (T,) an earlier interchangeable task, or -1
    pair_of: IntArray  # (T, T) index of the table of two tasks that share a flow, or -1
    pairs: IntArray  # (tables, 2)
    inverse_node: FloatArray  # (2, C)
    sets_of: IntArray  # (C + 1,) sets of tasks that node c could hold: sets_of[c] up to sets_of[c + 1]
    set_tasks: IntArray  # (sets,) as bits
    set_demand: FloatArray  # (sets, 3)
    set_cross: FloatArray  # (sets, 2) what the tasks' utilisations add to each other's squares
    set_first: IntArray  # (sets + 1,)
    set_member: IntArray  # the tasks of set s: set_member[set_first[s] : set_first[s + 1]]


def form(view: ProblemView) -> Form:
    """The problem of ``view`` with its tasks in branching order."""
    order = _order(view)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    src, dst = (np.where(ends >= 0, position[np.maximum(ends, 0)], ends) for ends in (view.flow_src, view.flow_dst))
    demand, fits = view.demand[order], view.fits[order]
    span = view.high - view.low
    worth = np.divide(1.0, span * max(1, len(span)), out=np.zeros_like(span), where=span > 0)
    kappa, kappa2, width = _path_sums(view)
    count = view.link_count
    eta = view.weights[2] * np.sqrt(np.maximum(kappa2 / count - (kappa / count) ** 2, 0.0))
    closes = np.maximum(src, dst)  # negative: both ends are nodes
    level_task, level_flow = [-1 for f in np.flatnonzero(closes < 0)], np.flatnonzero(closes < 0).tolist()
    for t in range(len(order)):
        now = sorted(np.flatnonzero(closes == t).tolist(), key=lambda f: -view.high[f])
        level_task += [t, *(-1 for _ in now)]
        level_flow += [-1, *now]
    pair_of, pairs = _pairs(src, dst, len(order))
    more = np.ascontiguousarray(demand.T[:2, :, None] * view.inverse[:, None, :])
    return Form(
        order=order,
        demand=np.ascontiguousarray(demand),
        fits=np.ascontiguousarray(fits),
        more=more,
        free=view.free,
        use=view.use,
        node_count=view.node_count,
        node_sum=view.node_sum,
        node_squares=view.node_squares,
        src=src,
        dst=dst,
        low=view.low,
        high=view.high,
        worth=worth,
        pair_first=view.pair_first,
        path_first=view.path_first,
        resource=view.path_resource,
        times=view.path_times,
        kappa=kappa,
        kappa2=kappa2,
        eta=eta,
        width=width,
        residual=view.residual,
        link_use=view.link_use,
        inverse=view.link_inverse,
        link_count=count,
        link_sum=view.link_sum,
        link_squares=view.link_squares,
        weights=view.weights,
        level_task=np.array(level_task, dtype=np.int64),
        level_flow=np.array(level_flow, dtype=np.int64),
        level_last=np.maximum.accumulate(np.array(level_task, dtype=np.int64)),
        twin=_twins(demand, fits, src, dst, view.low, view.high),
        pair_of=pair_of,
        pairs=pairs,
        inverse_node=view.inverse,
        **_sets(np.ascontiguousarray(demand), np.ascontiguousarray(fits), more, view.free),
    )


def _order(view: ProblemView) -> IntArray:
    """Tasks with high demand and traffic first; each next task shares flows with earlier ones where possible."""
    tasks = len(view.demand)
    free = view.free.max(axis=1, initial=0.0)
    size = (view.demand / np.where(free > 0, free, np.inf)).sum(axis=1)
    residual = float(view.residual.max(initial=0.0)) or 1.0
    talk = np.zeros((tasks, tasks + 1))
    for src, dst, low, high in zip(view.flow_src, view.flow_dst, view.low, view.high, strict=True):
        for one, other in ((src, dst), (dst, src)):
            if one >= 0:
                talk[one, other if other >= 0 else tasks] += 0.2 + (low + high) / residual
    choices = view.fits.sum(axis=1)
    weight = size + 0.5 * talk.sum(axis=1) - 0.02 * choices
    tied = talk[:, tasks].copy()
    order: list[int] = []
    for _ in range(tasks):
        rating = weight + 2.0 * tied
        rating[order] = -np.inf
        chosen = int(np.argmax(rating))
        order.append(chosen)
        tied += talk[:, chosen]
    return np.array(order, dtype=np.int64)


def _path_sums(view: ProblemView) -> tuple[FloatArray, FloatArray, FloatArray]:
    lengths = np.diff(view.path_first)
    path = np.repeat(np.arange(len(lengths)), lengths)
    load = view.link_inverse[view.path_resource] * view.path_times
    kappa = np.bincount(path, weights=load, minlength=len(lengths)).astype(np.float64)
    kappa2 = np.bincount(path, weights=load * load, minlength=len(lengths)).astype(np.float64)
    width = np.full(len(lengths), np.inf)
    np.minimum.at(width, path, view.residual[view.path_resource] / view.path_times)
    return kappa, kappa2, width


def _twins(
    demand: FloatArray, fits: BoolArray, src: IntArray, dst: IntArray, low: FloatArray, high: FloatArray
) -> IntArray:
    """Per task, the latest earlier task with which swapping changes nothing."""
    flows = {(int(a), int(b)): (float(x), float(y)) for a, b, x, y in zip(src, dst, low, high, strict=True)}
    twin = np.full(len(demand), -1, dtype=np.int64)
    for t in range(len(demand)):
        for other in range(t - 1, -1, -1):
            if not ((demand[t] == demand[other]).all() and (fits[t] == fits[other]).all()):
                continue
            swap = {t: other, other: t}
            swapped = {(swap.get(a, a), swap.get(b, b)): rates for (a, b), rates in flows.items()}
            if swapped == flows:
                twin[t] = other
                break
    return twin


def _pairs(src: IntArray, dst: IntArray, tasks: int) -> tuple[IntArray, IntArray]:
    ends = zip(src.tolist(), dst.tolist(), strict=True)
    chosen = sorted({(min(a, b), max(a, b)) for a, b in ends if a >= 0 and b >= 0})
    pair_of = np.full((tasks, tasks), -1, dtype=np.int64)
    for number, (a, b) in enumerate(chosen):
        pair_of[a, b] = pair_of[b, a] = number
    return pair_of, np.array(chosen, dtype=np.int64).reshape(len(chosen), 2)


def _sets(demand: FloatArray, fits: BoolArray, more: FloatArray, free: FloatArray) -> dict[str, Any]:
    tasks, count = fits.shape
    sets_of, masks, lists = [0], [], []
    for c in range(count):
        found = _sets_on(np.flatnonzero(fits[:, c]).tolist(), demand, free[:, c]) if tasks < 63 else None
        for members in found or ():
            masks.append(sum(1 << t for t in members))
            lists.append(members)
        sets_of.append(len(masks))
    node = np.repeat(np.arange(count), np.diff(sets_of))
    set_first = np.concatenate([[0], np.cumsum([len(members) for members in lists])]).astype(np.int64)
    member = np.array([t for members in lists for t in members], dtype=np.int64)
    owner = np.repeat(np.arange(len(lists)), np.diff(set_first))
    each = more[:, member, node[owner]]
    cross = np.empty((len(lists), 2))
    for r in range(2):
        total = np.bincount(owner, weights=each[r], minlength=len(lists))
        cross[:, r] = total**2 - np.bincount(owner, weights=each[r] ** 2, minlength=len(lists))
    asks = [np.bincount(owner, weights=demand[member, r], minlength=len(lists)) for r in range(3)]
    return {
        "sets_of": np.array(sets_of, dtype=np.int64),
        "set_tasks": np.array(masks, dtype=np.int64),
        "set_demand": np.ascontiguousarray(np.array(asks).T.reshape(len(lists), 3)),
        "set_cross": cross,
        "set_first": set_first,
        "set_member": member,
    }


def _sets_on(tasks: list[int], demand: FloatArray, free: FloatArray) -> list[tuple[int, ...]] | None:
    """Every subset of these tasks that fits together, the empty one first; None where there are too many."""
    asks, residual = demand.tolist(), [value * (1 + 1e-12) for value in free.tolist()]
    found: list[tuple[int, ...]] = [()]
    front: list[tuple[tuple[int, ...], int, list[float]]] = [((), 0, [0.0, 0.0, 0.0])]
    while front:
        members, start, used = front.pop()
        for i in range(start, len(tasks)):
            now = [a + b for a, b in zip(used, asks[tasks[i]], strict=True)]
            if now[0] <= residual[0] and now[1] <= residual[1] and now[2] <= residual[2]:
                if len(found) >= SETS:
                    return None
                found.append((*members, tasks[i]))
                front.append((found[-1], i + 1, now))
    return found
