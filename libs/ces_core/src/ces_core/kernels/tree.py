"""Depth-first branch and bound over nodes and paths, compiled, in slices that can be taken up again.

One level places one task or gives one flow its path; see :class:`~ces_core.kernels.tree_form.Form`. At some levels the
tables of :mod:`~ces_core.kernels.tree_bound` are made anew, below them they are read. A leaf has everything but its
rates, which :mod:`~ces_core.kernels.tree_leaf` finds where capacities leave a choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.jit import compiled
from ces_core.kernels.lending import lent
from ces_core.kernels.tree_bound import build, domains
from ces_core.kernels.tree_form import Form
from ces_core.kernels.tree_leaf import best_rates
from ces_core.kernels.tree_ranges import widest
from ces_core.kernels.tree_state import (
    State,
    anchor,
    anchored,
    end_node,
    path_cost,
    place,
    route,
    take_back,
    unroute,
)
from ces_core.kernels.tree_tables import Tables
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

BEST, CERTAIN, MARGIN = 0, 1, 2
"""``Search.numbers``: the least Z found; what no leaf that was looked at can be below; what a gain must exceed."""
NODES, LEAVES, SOLVED, FOUND, BUILT = 0, 1, 2, 3, 4
"""``Search.counts``: levels opened, leaves reached, leaves solved for rates, plans found, tables built."""

FIRST_SWEEPS, SWEEPS = 30, 5
"""Rounds of moving costs between tables, at most: where nothing is known yet, and below."""
HALVINGS = 4
"""So often, at most, a task's level halves a range of a deviation or mean."""
WORTH_HALVING = 0.5
"""A range is halved where it costs the bound this much of what is missing to the best known."""


class Search(NamedTuple):
    """Where the search is."""

    choice: IntArray  # (L, W) candidates of each level that was opened
    bound: FloatArray  # (L, W) their lower bounds, ascending
    size: IntArray  # (L,)
    at: IntArray  # (L,) the one that is applied, -1 none
    sure: FloatArray  # (L + 1,) certain cost before the level's decision
    rest: FloatArray  # (L,) least cost of the tasks yet to come
    cost: FloatArray  # (T, T, C) costs of the tasks from this one on, made when its level was opened
    built: NDArray[np.bool_]  # (T,) whether this task's level has its costs
    numbers: FloatArray
    counts: IntArray
    best_nodes: IntArray  # (T,)
    best_paths: IntArray  # (F,)
    best_rates: FloatArray  # (F,)
    rates: FloatArray  # (F,) scratch
    reach: FloatArray  # (T,) scratch, as the following
    trial: FloatArray  # (T, C)
    domain: IntArray  # (T, C)
    domain_size: IntArray  # (T,)
    union: NDArray[np.bool_]  # (T, C)


def fresh_search(form: Form) -> Search:
    """A search at its root."""
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
        cost=np.zeros((tasks, tasks, count)),
        built=np.zeros(tasks, dtype=np.bool_),
        numbers=np.array([np.inf, np.inf, 0.0]),
        counts=np.zeros(5, dtype=np.int64),
        best_nodes=np.full(tasks, -1, dtype=np.int64),
        best_paths=np.full(flows, -1, dtype=np.int64),
        best_rates=np.zeros(flows),
        rates=np.zeros(flows),
        reach=np.zeros(tasks),
        trial=np.zeros((tasks, count)),
        domain=np.zeros((tasks, count), dtype=np.int64),
        domain_size=np.zeros(tasks, dtype=np.int64),
        union=np.zeros((tasks, count), dtype=np.bool_),
    )


@compiled
def explore(form: Form, state: State, tables: Tables, search: Search, base: int, level: int, budget: int) -> int:
    """Opens ``level`` and goes on until everything from ``base`` on is settled (returns -1), or until ``budget`` levels
    were opened (returns the level to open next)."""
    form, state, tables, search = lent(form), lent(state), lent(tables), lent(search)
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
                search.size[level] = 0
                cut = numbers[BEST] - numbers[MARGIN]
                if form.level_task[level] >= 0:
                    _open_task(form, state, tables, search, level, cut)
                else:
                    _open_flow(form, state, tables, search, level, cut)
                _sort(search, level)
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
    search.built[:] = False
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
def _dearer(form: Form, state: State, tables: Tables, search: Search, level: int, flow: int, cost: FloatArray) -> float:
    """What the flow, which closes with the latest task, costs beyond what that task's tables foresaw."""
    task = form.level_last[level]
    if task < 0 or not search.built[task]:
        return 0.0
    now = tables.scale[task, 0] * (cost[0] - tables.scale[task, 1] * cost[1]) + cost[2]
    return float(now - tables.row[task, flow, state.node_of[task]])


@compiled
def _open_flow(form: Form, state: State, tables: Tables, search: Search, level: int, cut: float) -> None:
    """The paths of this level's flow with their bounds, where they could beat ``cut``."""
    flow = form.level_flow[level]
    a, b = end_node(state.node_of, form.src[flow]), end_node(state.node_of, form.dst[flow])
    pair = a * form.fits.shape[1] + b
    cost = np.empty(3)
    search.rest[level] = search.rest[level - 1] if level > 0 else 0.0
    last = form.level_last[level]
    known = last >= 0 and search.built[last]
    for q in range(form.pair_first[pair], form.pair_first[pair + 1]):
        if path_cost(form, state, flow, q, cost):
            bound = search.sure[level] + search.rest[level]
            bound += _dearer(form, state, tables, search, level, flow, cost)
            if not known:
                bound = -np.inf
            if bound < cut:
                _add(search, level, q, bound)


@compiled
def _open_task(form: Form, state: State, tables: Tables, search: Search, level: int, cut: float) -> None:
    """The nodes of this level's task with their bounds, where they could beat ``cut``."""
    k = form.level_task[level]
    cost, reach = search.cost[k], search.reach
    inherit = k > 0 and search.built[k - 1]
    if not domains(form, state, tables, k, search.cost[k - 1] if inherit else cost, inherit):
        return
    search.built[k] = True
    if inherit:
        tables.limit[k] = tables.limit[k - 1]
    else:
        tables.limit[k, :, 0] = 0.0
        tables.limit[k, :, 1] = np.inf
    sure = _bounded(form, state, tables, search, k, cut, SWEEPS if inherit else FIRST_SWEEPS)
    if sure == np.inf:
        return
    search.sure[level] = sure
    rest = 0.0
    for t in range(k + 1, len(form.demand)):
        rest += reach[t]
    search.rest[level] = rest
    for i in range(tables.size[k]):
        n = tables.domain[k, i]
        bound = sure + rest + cost[k, n]
        if bound < cut:
            _add(search, level, n, bound)


@compiled
def _bounded(form: Form, state: State, tables: Tables, search: Search, k: int, cut: float, sweeps: int) -> float:
    """Makes the tables of task ``k``, then halves the ranges of deviations and means as long as one half is proven
    empty; tables and domains follow. Returns what is certain then, or infinity where nothing is left."""
    tasks = len(form.demand)
    reach, trial, cost = search.reach, tasks, search.trial
    search.counts[BUILT] += 1
    sure = build(form, state, tables, k, k, cut, sweeps, search.cost[k], reach)
    for _ in range(HALVINGS):
        if sure == np.inf:
            break
        bound = sure
        for t in range(k, tasks):
            bound += reach[t]
        which, loss = widest(form, tables)
        if which < 0 or loss < WORTH_HALVING * (cut - bound):
            break
        low, high = tables.range[which, 0], tables.range[which, 1]
        middle = 0.5 * (low + high)
        search.domain[:] = tables.domain
        search.domain_size[:] = tables.size
        search.union[:] = False
        alive = -1
        number = 0
        tables.limit[k] = tables.range
        for half in range(2):
            tables.limit[trial] = tables.limit[k]
            tables.limit[trial, which, 1 - half] = middle
            tables.domain[:] = search.domain
            tables.size[:] = search.domain_size
            search.counts[BUILT] += 1
            if build(form, state, tables, k, trial, cut, SWEEPS, cost, reach) < np.inf:
                alive = half
                number += 1
                for t in range(k, tasks):
                    for i in range(tables.size[t]):
                        search.union[t, tables.domain[t, i]] = True
        if number == 0:
            return np.inf
        if number == 1:
            tables.limit[k, which, 1 - alive] = middle
        for t in range(k, tasks):
            size = 0
            for i in range(search.domain_size[t]):
                n = search.domain[t, i]
                if search.union[t, n]:
                    tables.domain[t, size] = n
                    size += 1
            tables.size[t] = size
        search.counts[BUILT] += 1
        sure = build(form, state, tables, k, k, cut, SWEEPS, search.cost[k], reach)
        if number == 2:
            break
    return float(sure)


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
            search.rates[f] = anchor(form.high[f], form.width[state.path_of[f]])
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
        rate = anchor(form.high[f], form.width[q])
        if form.worth[f] < form.eta[q] and rate > form.low[f]:
            return False
    room = form.room.copy()
    for f in range(len(form.src)):
        q = state.path_of[f]
        rate = anchor(form.high[f], form.width[q])
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
