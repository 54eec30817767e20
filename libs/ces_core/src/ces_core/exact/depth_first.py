"""Depth-first branch and bound over nodes and paths, compiled, in resumable slices.

Each level places one task or chooses the path of one flow; see :class:`~ces_core.exact.form.Form`. At some levels the
tables of :mod:`~ces_core.exact.bound` are rebuilt, and levels below read them. A leaf lacks only its rates, which
:mod:`~ces_core.exact.leaf_rates` computes where capacities leave a choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled, lent
from ces_core.exact.bound import build, domains
from ces_core.exact.form import Form
from ces_core.exact.leaf_rates import best_rates
from ces_core.exact.ranges import widest
from ces_core.exact.tree_state import (
    NODE_SQUARES,
    NODE_SUM,
    State,
    Tables,
    anchored,
    end_node,
    path_cost,
    place,
    route,
    spread,
    take_back,
    unroute,
)
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray

BEST, CERTAIN, MARGIN = 0, 1, 2
"""Indices of ``Search.numbers``: smallest Z found; lower bound over the leaves examined; minimum improvement."""
NODES, LEAVES, SOLVED, FOUND, BUILT = 0, 1, 2, 3, 4
"""Indices of ``Search.counts``: levels opened, leaves reached, leaves solved for rates, plans found, tables built."""

FIRST_SWEEPS, SWEEPS = 30, 5
"""Maximum rounds of moving costs between tables: at the root, and below it."""
HALVINGS = 4
"""Maximum number of times a task's level halves the range of a deviation or mean."""
WORTH_HALVING = 0.5
"""A range is halved if it costs the bound at least this share of the gap to the best known plan."""


class Search(NamedTuple):
    """State of the search: L levels of up to W candidates."""

    choice: IntArray  # (L, W) candidates of each open level
    bound: FloatArray  # (L, W) their lower bounds, ascending
    size: IntArray  # (L,)
    at: IntArray  # (L,) index of the applied candidate, or -1
    sure: FloatArray  # (L + 1,) certain cost before the level's decision
    rest: FloatArray  # (L,) minimum cost of the remaining tasks
    cost: FloatArray  # (T, T, C) costs of tasks from this one on, built when its level was opened
    built: BoolArray  # (T,) whether this task's level has its costs
    numbers: FloatArray
    counts: IntArray
    best_nodes: IntArray  # (T,)
    best_paths: IntArray  # (F,)
    best_rates: FloatArray  # (F,)
    rates: FloatArray  # (F,) scratch
    reach: FloatArray  # (T,) scratch, like those below
    trial: FloatArray  # (T, C)
    domain: IntArray  # (T, C)
    domain_size: IntArray  # (T,)
    union: BoolArray  # (T, C)


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
    """Opens ``level`` and continues until the subtree below ``base`` is exhausted (returns -1), or ``budget`` levels
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
    """Applies these decisions from the root on a fresh state; the next task's level rebuilds the tables."""
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
    """Undoes every decision above ``level``, latest first."""
    while level > 0:
        level -= 1
        undo(form, state, search, level)


@compiled
def undo(form: Form, state: State, search: Search, level: int) -> None:
    """Undoes the decision of this level."""
    task = form.level_task[level]
    if task >= 0:
        take_back(form, state, level, task)
    else:
        unroute(form, state, level, form.level_flow[level])


@compiled
def apply(form: Form, state: State, tables: Tables, search: Search, level: int) -> None:
    """Applies the decision in ``search.at`` and records the cost that is then certain."""
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
    """Cost of the flow, which closes with the latest task, beyond the estimate in that task's tables."""
    task = form.level_last[level]
    if task < 0 or not search.built[task]:
        return 0.0
    now = tables.scale[task, 0] * (cost[0] - tables.scale[task, 1] * cost[1]) + cost[2]
    return float(now - tables.row[task, flow, state.node_of[task]])


@compiled
def _open_flow(form: Form, state: State, tables: Tables, search: Search, level: int, cut: float) -> None:
    """Lists the paths of this level's flow that could beat ``cut``, with their bounds."""
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
    """Lists the nodes of this level's task that could beat ``cut``, with their bounds."""
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
    """Builds the tables of task ``k``, then halves ranges of deviations and means while one half is proven empty;
    tables and domains follow. Returns the cost then certain, or infinity where nothing is left."""
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
            search.rates[f] = min(form.high[f], form.width[state.path_of[f]])
        _improve(state, search, value)
        return
    counts[SOLVED] += 1
    nodes = 0.0
    for r in range(2):
        nodes += form.weights[r] * spread(state.sums[NODE_SUM + r], state.sums[NODE_SQUARES + r], form.node_count[r])
    cost, proven = best_rates(form, state.path_of, search.rates)
    if nodes + cost < numbers[BEST]:
        _improve(state, search, nodes + cost)
    if nodes + proven < numbers[BEST] - numbers[MARGIN]:
        numbers[CERTAIN] = min(numbers[CERTAIN], nodes + proven)


@compiled
def _anchors_are_best(form: Form, state: State) -> bool:
    """Whether the anchors fit together and no flow gains by a lower rate: then they are the best rates."""
    for f in range(len(form.src)):
        q = state.path_of[f]
        rate = min(form.high[f], form.width[q])
        if form.worth[f] < form.eta[q] and rate > form.low[f]:
            return False
    residual = form.residual.copy()
    for f in range(len(form.src)):
        q = state.path_of[f]
        rate = min(form.high[f], form.width[q])
        for i in range(form.path_first[q], form.path_first[q + 1]):
            residual[form.resource[i]] -= rate * form.times[i]
            if residual[form.resource[i]] < 0.0:
                return False
    return True


@compiled
def _improve(state: State, search: Search, value: float) -> None:
    search.numbers[BEST] = value
    search.counts[FOUND] += 1
    search.best_nodes[:] = state.node_of
    search.best_paths[:] = state.path_of
    search.best_rates[:] = search.rates
