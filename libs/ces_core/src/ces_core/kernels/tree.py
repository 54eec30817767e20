"""Depth-first branch and bound over nodes and paths, compiled, in slices that can be taken up again.

One level places one task or gives one flow its path; see :class:`~ces_core.kernels.tree_form.Form`. At some levels the
tables of :mod:`~ces_core.kernels.tree_bound` are made anew, below them they are read. A leaf has everything but its
rates, which :mod:`~ces_core.kernels.tree_leaf` finds where capacities leave a choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ces_core.kernels.jit import compiled
from ces_core.kernels.tree_bound import NEVER, Tables, build, domains
from ces_core.kernels.tree_form import Form
from ces_core.kernels.tree_leaf import best_rates
from ces_core.kernels.tree_state import (
    State,
    anchor,
    anchored,
    end_node,
    fits_now,
    path_cost,
    place,
    route,
    take_back,
    unroute,
)
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

BEST, CERTAIN, MARGIN = 0, 1, 2
"""``Search.numbers``: the least Z found; what no leaf that was looked at can be below; what a gain must exceed."""
NODES, LEAVES, SOLVED, FOUND, BUILT = 0, 1, 2, 3, 4
"""``Search.counts``: levels opened, leaves reached, leaves solved for rates, plans found, tables built."""


class Search(NamedTuple):
    """Where the search is."""

    choice: IntArray  # (L, W) candidates of each level that was opened
    bound: FloatArray  # (L, W) their lower bounds, ascending
    size: IntArray  # (L,)
    at: IntArray  # (L,) the one that is applied, -1 none
    sure: FloatArray  # (L + 1,) certain cost before the level's decision
    rest: FloatArray  # (L,) least cost of the tasks yet to come
    cost: FloatArray  # (T + 1, T, C) cost of each task on each node when that task's level was opened
    slot: IntArray  # (T,) tables made at this task's level, or -1
    slot_now: IntArray  # (T,) tables that this task's level reads
    numbers: FloatArray
    counts: IntArray
    best_nodes: IntArray  # (T,)
    best_paths: IntArray  # (F,)
    best_rates: FloatArray  # (F,)
    rates: FloatArray  # (F,) scratch
    extra: FloatArray  # (T, C) scratch
    reach: FloatArray  # (T,) scratch


def fresh_search(form: Form, slot: IntArray) -> Search:
    """A search at its root; ``slot`` says which task levels make tables."""
    tasks, count = form.fits.shape
    levels, flows = len(form.level_task), len(form.src)
    width = max(count, int(np.diff(form.pair_first).max(initial=1)))
    return Search(
        choice=np.zeros((levels, width), dtype=np.int64),
        bound=np.zeros((levels, width)),
        size=np.zeros(levels, dtype=np.int64),
        at=np.full(levels, -1, dtype=np.int64),
        sure=np.zeros(levels + 1),
        rest=np.zeros(levels),
        cost=np.zeros((tasks + 1, tasks, count)),
        slot=slot,
        slot_now=np.full(tasks, -1, dtype=np.int64),
        numbers=np.array([np.inf, np.inf, 0.0]),
        counts=np.zeros(5, dtype=np.int64),
        best_nodes=np.full(tasks, -1, dtype=np.int64),
        best_paths=np.full(flows, -1, dtype=np.int64),
        best_rates=np.zeros(flows),
        rates=np.zeros(flows),
        extra=np.zeros((tasks, count)),
        reach=np.zeros(tasks),
    )


@compiled
def explore(form: Form, state: State, tables: Tables, search: Search, base: int, level: int, budget: int) -> int:
    """Opens ``level`` and goes on until everything from ``base`` on is settled (returns -1), or until ``budget`` levels
    were opened (returns the level to open next)."""
    levels = len(form.level_task)
    numbers, counts = search.numbers, search.counts
    fresh = True
    while True:
        if fresh:
            if level == levels:
                _leaf(form, state, search)
                level -= 1
                fresh = False
                if level < base:
                    return -1
            else:
                if budget <= 0:
                    return level
                budget -= 1
                counts[NODES] += 1
                search.at[level] = -1
                open_level(form, state, tables, search, level, numbers[BEST] - numbers[MARGIN])
                fresh = False
        if search.at[level] >= 0:
            undo(form, state, search, level)
        search.at[level] += 1
        i = search.at[level]
        if i >= search.size[level] or search.bound[level, i] >= numbers[BEST] - numbers[MARGIN]:
            search.at[level] = -1
            level -= 1
            if level < base:
                return -1
            continue
        apply(form, state, tables, search, level)
        level += 1
        fresh = True


@compiled
def jump(form: Form, state: State, search: Search, choices: IntArray) -> None:
    """Takes these decisions from the root on, on a fresh state; the next task's level makes tables."""
    search.slot_now[:] = -1
    cost = np.empty(3)
    for level in range(len(choices)):
        task = form.level_task[level]
        search.sure[level] = search.rest[level] = 0.0
        if task >= 0:
            place(form, state, level, task, choices[level])
        else:
            flow = form.level_flow[level]
            path_cost(form, state, flow, choices[level], cost)
            route(form, state, level, flow, choices[level], cost)
    search.sure[len(choices)] = 0.0


@compiled
def leave(form: Form, state: State, search: Search, level: int) -> None:
    """Takes back every decision above ``level``, the latest first."""
    while level > 0:
        level -= 1
        undo(form, state, search, level)


@compiled
def undo(form: Form, state: State, search: Search, level: int) -> None:
    task = form.level_task[level]
    if task >= 0:
        take_back(form, state, level, task)
    else:
        unroute(form, state, level, form.level_flow[level])


@compiled
def apply(form: Form, state: State, tables: Tables, search: Search, level: int) -> None:
    """Takes the decision that ``search.at`` names, and notes what is certain then."""
    chosen = search.choice[level, search.at[level]]
    task = form.level_task[level]
    if task >= 0:
        place(form, state, level, task, chosen)
        search.sure[level + 1] = search.sure[level] + search.cost[task, task, chosen]
        return
    flow = form.level_flow[level]
    cost = np.empty(3)
    path_cost(form, state, flow, chosen, cost)
    search.sure[level + 1] = search.sure[level] + _dearer(form, state, tables, search, level, flow, cost)
    route(form, state, level, flow, chosen, cost)


@compiled
def _slot_at(form: Form, search: Search, level: int) -> int:
    """The tables that hold at this level of a flow; -1 before any were made."""
    last = form.level_last[level]
    return int(search.slot_now[last]) if last >= 0 else -1


@compiled
def _dearer(form: Form, state: State, tables: Tables, search: Search, level: int, flow: int, cost: FloatArray) -> float:
    """What the flow costs beyond what the tables foresaw."""
    slot = _slot_at(form, search, level)
    if slot < 0:
        return 0.0
    a, b = end_node(form, state, form.src[flow]), end_node(form, state, form.dst[flow])
    now = tables.scale[slot, 0] * (cost[0] - tables.scale[slot, 1] * cost[1]) + cost[2]
    return float(now - tables.flow[slot, flow, a, b])


@compiled
def open_level(form: Form, state: State, tables: Tables, search: Search, level: int, cut: float) -> None:
    """The level's candidates with their bounds, best first; those that cannot beat ``cut`` are left out."""
    task = form.level_task[level]
    search.size[level] = 0
    if task >= 0:
        _open_task(form, state, tables, search, level, task, cut)
    else:
        _open_flow(form, state, tables, search, level, form.level_flow[level], cut)
    _sort(search, level)


@compiled
def _open_flow(form: Form, state: State, tables: Tables, search: Search, level: int, flow: int, cut: float) -> None:
    a, b = end_node(form, state, form.src[flow]), end_node(form, state, form.dst[flow])
    pair = a * form.fits.shape[1] + b
    cost = np.empty(3)
    search.rest[level] = search.rest[level - 1] if level > 0 else 0.0
    for q in range(form.pair_first[pair], form.pair_first[pair + 1]):
        if path_cost(form, state, flow, q, cost):
            bound = search.sure[level] + search.rest[level]
            bound += _dearer(form, state, tables, search, level, flow, cost)
            if _slot_at(form, search, level) < 0:
                bound = -np.inf
            if bound < cut:
                _add(search, level, q, bound)


@compiled
def _open_task(form: Form, state: State, tables: Tables, search: Search, level: int, k: int, cut: float) -> None:
    tasks, count = form.fits.shape
    cost = search.cost[k]
    slot = int(search.slot_now[k - 1]) if k > 0 else -1
    first = slot < 0
    if first:
        cost[:, :] = 0.0
        search.sure[level] = 0.0
    else:
        node = state.node_of[k - 1]
        for t in range(k, tasks):
            p = form.pair_of[k - 1, t]
            for n in range(count):
                cost[t, n] = search.cost[k - 1, t, n]
                if p >= 0 and cost[t, n] < NEVER / 2:
                    cost[t, n] += tables.pair[slot, p, node, n]
    rest = _least(form, state, tables, search, k, slot, cost)
    if not first and search.sure[level] + rest >= cut:
        return
    if first or search.slot[k] >= 0:
        slot = max(0, int(search.slot[k]))
        for t in range(k, tasks):
            for n in range(count):
                cost[t, n] += search.extra[t, n]
            search.reach[t] = np.inf if first else cut - search.sure[level] - rest + search.reach[t]
        if not domains(form, state, tables, k, cost, search.reach):
            return
        search.counts[BUILT] += 1
        search.sure[level] = build(form, state, tables, slot, k, cut, 20 if first else 5, cost)
        if search.sure[level] == np.inf:
            return
        rest = _least(form, state, tables, search, k, -1, cost)
        if search.sure[level] + rest >= cut:
            return
    search.slot_now[k] = slot
    search.rest[level] = rest - search.reach[k]
    after = state.node_of[form.twin[k]] if form.twin[k] >= 0 else -1
    for n in range(max(0, after), count):
        value = cost[k, n] + search.extra[k, n]
        bound = search.sure[level] + search.rest[level] + value
        if bound < cut and fits_now(form, state, k, n):
            _add(search, level, n, bound)


@compiled
def _least(form: Form, state: State, tables: Tables, search: Search, k: int, slot: int, cost: FloatArray) -> float:
    """Sum over the tasks from ``k`` on of the least cost on any node with room; each task's goes to ``reach``.

    With tables (``slot``), flows with one end in place are looked at again: what was placed since may be in their way.
    The surplus goes to ``extra``.
    """
    tasks, count = form.fits.shape
    if slot >= 0:
        search.extra[k:, :] = 0.0
        out = np.empty(3)
        for f in range(len(form.src)):
            if state.path_of[f] >= 0:
                continue
            a, b = end_node(form, state, form.src[f]), end_node(form, state, form.dst[f])
            if (a < 0) == (b < 0):
                continue
            task = form.src[f] if a < 0 else form.dst[f]
            for n in range(count):
                if cost[task, n] >= NEVER / 2 or not fits_now(form, state, task, n):
                    continue
                pair = n * count + b if a < 0 else a * count + n
                least = NEVER
                for q in range(form.pair_first[pair], form.pair_first[pair + 1]):
                    if path_cost(form, state, f, q, out):
                        here = tables.scale[slot, 0] * (out[0] - tables.scale[slot, 1] * out[1]) + out[2]
                        least = min(least, here)
                before = tables.flow[slot, f, n, b] if a < 0 else tables.flow[slot, f, a, n]
                search.extra[task, n] += least - before
    else:
        search.extra[k:, :] = 0.0
    total = 0.0
    for t in range(k, tasks):
        least = np.inf
        for n in range(count):
            value = cost[t, n] + search.extra[t, n]
            if value < least and fits_now(form, state, t, n):
                least = value
        search.reach[t] = least
        total += least
    return total


@compiled
def _add(search: Search, level: int, choice: int, bound: float) -> None:
    i = search.size[level]
    search.choice[level, i] = choice
    search.bound[level, i] = bound
    search.size[level] = i + 1


@compiled
def _sort(search: Search, level: int) -> None:
    for i in range(1, search.size[level]):
        choice, bound = search.choice[level, i], search.bound[level, i]
        j = i
        while j > 0 and search.bound[level, j - 1] > bound:
            search.choice[level, j] = search.choice[level, j - 1]
            search.bound[level, j] = search.bound[level, j - 1]
            j -= 1
        search.choice[level, j] = choice
        search.bound[level, j] = bound


@compiled
def _leaf(form: Form, state: State, search: Search) -> None:
    numbers, counts = search.numbers, search.counts
    counts[LEAVES] += 1
    value = anchored(form, state)
    if value >= numbers[BEST] - numbers[MARGIN]:
        return
    if _anchors_are_best(form, state):
        for f in range(len(form.src)):
            search.rates[f] = anchor(form, f, state.path_of[f])
        _improve(state, search, value)
        return
    counts[SOLVED] += 1
    nodes = 0.0
    for r in range(2):
        nodes += form.weights[r] * _node_spread(form, state, r)
    cost, proven = best_rates(form, state.path_of, search.rates)
    if nodes + cost < numbers[BEST]:
        _improve(state, search, nodes + cost)
    if nodes + proven < numbers[BEST] - numbers[MARGIN]:
        numbers[CERTAIN] = min(numbers[CERTAIN], nodes + proven)


@compiled
def _node_spread(form: Form, state: State, r: int) -> float:
    mean = state.sums[r] / form.node_count[r]
    return float(np.sqrt(max(0.0, state.sums[2 + r] / form.node_count[r] - mean * mean)))


@compiled
def _anchors_are_best(form: Form, state: State) -> bool:
    """Whether the anchors fit together, and no flow gains by having less: then they are the best rates."""
    for f in range(len(form.src)):
        q = state.path_of[f]
        rate = anchor(form, f, q)
        if form.worth[f] < form.eta[q] and rate > form.low[f]:
            return False
    room = form.room.copy()
    for f in range(len(form.src)):
        q = state.path_of[f]
        rate = anchor(form, f, q)
        for i in range(form.path_first[q], form.path_first[q + 1]):
            room[form.resource[i]] -= rate * form.times[i]
            if room[form.resource[i]] < 0.0:
                return False
    return True


@compiled
def _improve(state: State, search: Search, value: float) -> None:
    search.numbers[BEST] = value
    search.counts[FOUND] += 1
    search.best_nodes[:] = state.node_of
    search.best_paths[:] = state.path_of
    search.best_rates[:] = search.rates
