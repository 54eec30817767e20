"""A lower bound on what a partial placement can still reach, as tables over pairs of tasks.

For a standard deviation s within [a, b], the chord of the square root gives s >= (s^2 + a*b) / (a + b), and for the
mean m within [p, q], -m^2 >= -(p + q) m + p*q. With that, Z' becomes a sum of squares, which splits over tasks, pairs
of tasks on one node, and flows; what two flows add on one link (never negative) is dropped until they are placed.
The minimum of such a sum is bounded by moving costs between the tables of pairs and those of single tasks (MPLP: A.
Globerson and T. Jaakkola, NIPS 2007), which changes no total and raises the sum of the single tasks' minima.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ces_core.kernels.jit import compiled
from ces_core.kernels.tree_form import Form
from ces_core.kernels.tree_state import (
    LINK_SQUARES,
    LINK_SUM,
    LOST,
    NODE_SQUARES,
    NODE_SUM,
    State,
    end_node,
    fits_now,
    path_cost,
)
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

CELLS = 6
"""Intervals of the mean that the bound on a standard deviation tells apart."""
NEVER = 1e9
"""Stands for infinity where costs are added up and taken apart; everything is scaled to stay far below."""


class Tables(NamedTuple):
    """S slots, one per level that makes tables; see :func:`build`."""

    pair: FloatArray  # (S, tables, C, C) what is left between two tasks
    flow: FloatArray  # (S, F, C, C) what a flow costs at least between two nodes
    scale: FloatArray  # (S, 2) factors of the links' squares and sum in these costs
    domain: IntArray  # (T, C)
    size: IntArray  # (T,)
    squares: FloatArray  # (F, Q) what each path would add now: squares, sum, loss
    sums: FloatArray
    lost: FloatArray
    cell: FloatArray  # (3, CELLS)
    first: FloatArray  # (C,) scratch
    second: FloatArray
    window: FloatArray  # (3, 2) the standard deviations that this search is about


def fresh_tables(form: Form, slots: int) -> Tables:
    tasks, count = form.fits.shape
    flows, paths = len(form.src), len(form.kappa)
    return Tables(
        pair=np.zeros((slots, max(1, len(form.pairs)), count, count)),
        flow=np.zeros((slots, max(1, flows), count, count)),
        scale=np.zeros((slots, 2)),
        domain=np.zeros((tasks, count), dtype=np.int64),
        size=np.zeros(tasks, dtype=np.int64),
        squares=np.zeros((max(1, flows), paths)),
        sums=np.zeros((max(1, flows), paths)),
        lost=np.zeros((max(1, flows), paths)),
        cell=np.zeros((3, CELLS)),
        first=np.zeros(count),
        second=np.zeros(count),
        window=np.array([[0.0, np.inf]] * 3),
    )


@compiled
def together(form: Form, state: State, one: int, other: int, node: int) -> bool:
    """Whether two tasks that each fit on the node fit there together."""
    one_asks, other_asks, free = form.demand[one], form.demand[other], state.free
    return bool(
        one_asks[0] + other_asks[0] <= free[0, node]
        and one_asks[1] + other_asks[1] <= free[1, node]
        and one_asks[2] + other_asks[2] <= free[2, node]
    )


@compiled
def _ends(tables: Tables, end: int, placed: int, single: IntArray) -> IntArray:
    if placed >= 0:
        single[0] = placed
        return single
    return tables.domain[end, : tables.size[end]]


@compiled
def _open_flows(form: Form, state: State, tables: Tables, ranges: FloatArray) -> bool:
    """Costs of every path that an open flow may take; per flow the least and most sum and the least loss.

    False where a flow has no way left.
    """
    count = form.fits.shape[1]
    cost = np.empty(3)
    one, two = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    for f in range(len(form.src)):
        if state.path_of[f] >= 0:
            continue
        src, dst = form.src[f], form.dst[f]
        a_placed, b_placed = end_node(form, state, src), end_node(form, state, dst)
        ranges[f, 0], ranges[f, 1], ranges[f, 2] = np.inf, -np.inf, np.inf
        for a in _ends(tables, src, a_placed, one):
            for b in _ends(tables, dst, b_placed, two):
                pair = a * count + b
                for q in range(form.pair_first[pair], form.pair_first[pair + 1]):
                    tables.squares[f, q] = np.inf
                if a == b and a_placed < 0 and b_placed < 0 and not together(form, state, src, dst, a):
                    continue
                for q in range(form.pair_first[pair], form.pair_first[pair + 1]):
                    if path_cost(form, state, f, q, cost):
                        tables.squares[f, q] = cost[0]
                        tables.sums[f, q] = cost[1]
                        tables.lost[f, q] = cost[2]
                        ranges[f, 0] = min(ranges[f, 0], cost[1])
                        ranges[f, 1] = max(ranges[f, 1], cost[1])
                        ranges[f, 2] = min(ranges[f, 2], cost[2])
        if ranges[f, 0] == np.inf:
            return False
    return True


@compiled
def _node_cells(form: Form, state: State, tables: Tables, k: int, r: int, mean: FloatArray) -> None:
    """Per interval of the mean utilisation the least variance; ``mean`` becomes the whole range."""
    count = form.node_count[r]
    low = high = state.sums[NODE_SUM + r]
    for t in range(k, len(form.demand)):
        least, most = np.inf, 0.0
        for i in range(tables.size[t]):
            more = form.more[r, t, tables.domain[t, i]]
            least, most = min(least, more), max(most, more)
        low += least
        high += most
    low, high = low / count, high / count
    mean[0], mean[1] = low, high
    for j in range(CELLS):
        p, q = low + (high - low) * j / CELLS, low + (high - low) * (j + 1) / CELLS
        total = state.sums[NODE_SQUARES + r] - (p + q) * state.sums[NODE_SUM + r]
        for t in range(k, len(form.demand)):
            least = np.inf
            for i in range(tables.size[t]):
                n = tables.domain[t, i]
                more = form.more[r, t, n]
                least = min(least, more * (more + 2.0 * state.use[r, n] - p - q))
            total += least
        tables.cell[r, j] = max(0.0, total / count + p * q)


@compiled
def _link_cells(form: Form, state: State, tables: Tables, ranges: FloatArray, mean: FloatArray) -> None:
    count, nodes = form.link_count, form.fits.shape[1]
    low = high = state.sums[LINK_SUM]
    for f in range(len(form.src)):
        if state.path_of[f] < 0:
            low += ranges[f, 0]
            high += ranges[f, 1]
    low, high = low / count, high / count
    mean[0], mean[1] = low, high
    one, two = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    total, least, middle = np.empty(CELLS), np.empty(CELLS), np.empty(CELLS)
    for j in range(CELLS):
        middle[j] = 2.0 * low + (high - low) * (2 * j + 1) / CELLS
        total[j] = state.sums[LINK_SQUARES] - middle[j] * state.sums[LINK_SUM]
    for f in range(len(form.src)):
        if state.path_of[f] >= 0:
            continue
        least[:] = np.inf
        src, dst = form.src[f], form.dst[f]
        for a in _ends(tables, src, end_node(form, state, src), one):
            for b in _ends(tables, dst, end_node(form, state, dst), two):
                pair = a * nodes + b
                for q in range(form.pair_first[pair], form.pair_first[pair + 1]):
                    squares, more = tables.squares[f, q], tables.sums[f, q]
                    if squares < np.inf:
                        for j in range(CELLS):
                            least[j] = min(least[j], squares - middle[j] * more)
        for j in range(CELLS):
            total[j] += least[j]
    for j in range(CELLS):
        p, q = low + (high - low) * j / CELLS, low + (high - low) * (j + 1) / CELLS
        tables.cell[2, j] = max(0.0, total[j] / count + p * q)


@compiled
def _windows(form: Form, tables: Tables, lost: float, cut: float, mean: FloatArray, window: FloatArray) -> bool:
    """Ranges for the three standard deviations and means of anything better than ``cut``; False: there is none."""
    below = lost
    for r in range(3):
        window[r, 0] = max(tables.window[r, 0], np.sqrt(tables.cell[r].min()))
        below += form.weights[r] * window[r, 0]
    if below >= cut:
        return False
    for r in range(3):
        weight = form.weights[r]
        window[r, 1] = tables.window[r, 1]
        if weight > 0.0:
            window[r, 1] = min(window[r, 1], window[r, 0] + (cut - below) / weight)
        if window[r, 1] < window[r, 0]:
            return False
        low, high = mean[r, 0], mean[r, 1]
        first, last = CELLS, -1
        limit = window[r, 1] ** 2 * (1.0 + 1e-9) + 1e-18
        for j in range(CELLS):
            if tables.cell[r, j] <= limit:
                first, last = min(first, j), j
        if last < 0:
            return False
        mean[r, 0] = low + (high - low) * first / CELLS
        mean[r, 1] = low + (high - low) * (last + 1) / CELLS
    return True


@compiled
def _push(pair: FloatArray, tables: Tables, unary: FloatArray, one: int, other: int) -> None:
    """Moves costs between the table of two tasks and the two, so that nothing can be moved further."""
    a_size, b_size = tables.size[one], tables.size[other]
    a_domain, b_domain = tables.domain[one], tables.domain[other]
    first, second = tables.first, tables.second
    for j in range(b_size):
        second[j] = np.inf
    for i in range(a_size):
        a = a_domain[i]
        mine, least = unary[one, a], np.inf
        for j in range(b_size):
            b = b_domain[j]
            value = pair[a, b] + mine + unary[other, b]
            pair[a, b] = value
            least = min(least, value)
            second[j] = min(second[j], value)
        first[i] = 0.5 * least
    for j in range(b_size):
        second[j] *= 0.5
    for i in range(a_size):
        a, least = a_domain[i], np.inf
        for j in range(b_size):
            b = b_domain[j]
            pair[a, b] -= first[i] + second[j]
            least = min(least, pair[a, b])
        for j in range(b_size):
            pair[a, b_domain[j]] -= least
        unary[one, a] = first[i] + least
    for j in range(b_size):
        b, least = b_domain[j], np.inf
        for i in range(a_size):
            least = min(least, pair[a_domain[i], b])
        for i in range(a_size):
            pair[a_domain[i], b] -= least
        unary[other, b] = second[j] + least


@compiled
def build(
    form: Form, state: State, tables: Tables, slot: int, k: int, cut: float, sweeps: int, unary: FloatArray
) -> float:
    """Tables for the tasks from ``k`` on, given the state and ``tables.domain``; fills ``unary`` (T, C).

    Returns what is certain apart from ``unary`` and the tables, or infinity where nothing better than ``cut`` is left.
    """
    tasks, count = form.fits.shape
    flows = len(form.src)
    ranges, mean, window = np.empty((max(1, flows), 3)), np.empty((3, 2)), np.empty((3, 2))
    if not _open_flows(form, state, tables, ranges):
        return np.inf
    lost = state.sums[LOST]
    for f in range(flows):
        if state.path_of[f] < 0:
            lost += ranges[f, 2]
    for r in range(2):
        _node_cells(form, state, tables, k, r, mean[r])
    _link_cells(form, state, tables, ranges, mean[2])
    if not _windows(form, tables, lost, cut, mean, window):
        return np.inf
    # The chords: weight * std >= base + factor * (squares - middle * sum).
    certain = state.sums[LOST]
    factor, middle = np.zeros(3), np.zeros(3)
    for r in range(3):
        width = window[r, 0] + window[r, 1]
        if form.weights[r] == 0.0 or width <= 0.0:
            continue
        number = form.link_count if r == 2 else form.node_count[r]
        total = state.sums[LINK_SUM] if r == 2 else state.sums[NODE_SUM + r]
        squares = state.sums[LINK_SQUARES] if r == 2 else state.sums[NODE_SQUARES + r]
        factor[r] = form.weights[r] / (width * number)
        middle[r] = mean[r, 0] + mean[r, 1]
        certain += form.weights[r] / width * (window[r, 0] * window[r, 1] + mean[r, 0] * mean[r, 1])
        certain += factor[r] * (squares - middle[r] * total)
    tables.scale[slot, 0], tables.scale[slot, 1] = factor[2], middle[2]
    for t in range(k, tasks):
        unary[t, :] = NEVER
        for i in range(tables.size[t]):
            n = tables.domain[t, i]
            value = 0.0
            for r in range(2):
                more = form.more[r, t, n]
                value += factor[r] * more * (more + 2.0 * state.use[r, n] - middle[r])
            unary[t, n] = value
    pair, flow = tables.pair[slot], tables.flow[slot]
    for p in range(len(form.pairs)):
        one, other = form.pairs[p, 0], form.pairs[p, 1]
        if one < k:
            continue
        pair[p, :, :] = 0.0
        for i in range(tables.size[one]):
            n = tables.domain[one, i]
            if not form.fits[other, n]:
                continue
            if not together(form, state, one, other, n):
                pair[p, n, n] = NEVER
            else:
                for r in range(2):
                    pair[p, n, n] += 2.0 * factor[r] * form.more[r, one, n] * form.more[r, other, n]
    single_a, single_b = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    for f in range(flows):
        if state.path_of[f] >= 0:
            continue
        src, dst = form.src[f], form.dst[f]
        a_placed, b_placed = end_node(form, state, src), end_node(form, state, dst)
        both = a_placed < 0 and b_placed < 0
        table = form.pair_of[src, dst] if both else -1
        for a in _ends(tables, src, a_placed, single_a):
            for b in _ends(tables, dst, b_placed, single_b):
                value = NEVER
                for q in range(form.pair_first[a * count + b], form.pair_first[a * count + b + 1]):
                    if tables.squares[f, q] < np.inf:
                        here = factor[2] * (tables.squares[f, q] - middle[2] * tables.sums[f, q]) + tables.lost[f, q]
                        value = min(value, here)
                flow[f, a, b] = value
                if both and table >= 0:
                    if src < dst:
                        pair[table, a, b] += value
                    else:
                        pair[table, b, a] += value
                elif a_placed < 0 and not both:
                    unary[src, a] += value
                elif b_placed < 0 and not both:
                    unary[dst, b] += value
    # Whatever is out of reach costs as much as makes no difference, so that sums stay exact.
    enough = 4.0 * (abs(cut) + abs(certain)) + 1.0
    for p in range(len(form.pairs)):
        one, other = form.pairs[p, 0], form.pairs[p, 1]
        if one >= k:
            for i in range(tables.size[one]):
                for j in range(tables.size[other]):
                    a, b = tables.domain[one, i], tables.domain[other, j]
                    pair[p, a, b] = min(pair[p, a, b], enough)
    for t in range(k, tasks):
        for i in range(tables.size[t]):
            n = tables.domain[t, i]
            unary[t, n] = min(unary[t, n], enough)
    before = -np.inf
    for sweep in range(sweeps):
        for p in range(len(form.pairs)):
            number = p if sweep % 2 == 0 else len(form.pairs) - 1 - p
            one, other = form.pairs[number, 0], form.pairs[number, 1]
            if one >= k:
                _push(pair[number], tables, unary, one, other)
        bound = certain
        for t in range(k, tasks):
            least = np.inf
            for i in range(tables.size[t]):
                least = min(least, unary[t, tables.domain[t, i]])
            bound += least
        if bound >= cut or bound - before < 0.01 * (cut - bound):
            break
        before = bound
    return float(certain)


@compiled
def domains(form: Form, state: State, tables: Tables, k: int, cost: FloatArray, reach: FloatArray) -> bool:
    """Nodes that are left for each task from ``k`` on: with room, and with a cost below the task's ``reach``."""
    for t in range(k, len(form.demand)):
        size = 0
        after = state.node_of[form.twin[t]] if form.twin[t] >= 0 else -1
        for n in range(form.fits.shape[1]):
            if cost[t, n] < reach[t] and n >= after and fits_now(form, state, t, n):
                tables.domain[t, size] = n
                size += 1
        tables.size[t] = size
        if size == 0:
            return False
    return True
