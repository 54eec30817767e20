"""A lower bound on what a partial placement can still reach, as tables over tasks, pairs of tasks and nodes.

For a standard deviation s within [a, b], the chord of the square root gives s >= (s^2 + a*b) / (a + b), and for the
mean m within [p, q], -m^2 >= -(p + q) m + p*q. With that, Z' becomes a sum of squares, which splits over tasks, flows,
and the sets of tasks that a node could hold; what two flows add on one link (never negative) is dropped until they are
placed. The minimum of such a sum is bounded by moving costs between the tables of flows and nodes and those of single
tasks (MPLP: A. Globerson and T. Jaakkola, NIPS 2007): no total changes, and the sum of the single minima rises.
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
    """What :func:`build` works with; ``scale``, ``row``, ``limit`` outlive it, one per task (the last: for trials)."""

    scale: FloatArray  # (T + 1, 2) factors of the links' squares and sum in costs
    row: FloatArray  # (T + 1, F, C) least cost of a flow that closes with the task, by the task's node
    limit: FloatArray  # (T + 1, 6, 2) ranges of the three deviations and means that are searched
    range: FloatArray  # (6, 2) what the latest build found possible within its limits
    pair: FloatArray  # (tables, C, C) what is left between two tasks that talk
    domain: IntArray  # (T, C)
    size: IntArray  # (T,)
    squares: FloatArray  # (F, Q) what each path would add now: squares, sum, loss
    sums: FloatArray
    lost: FloatArray
    cell: FloatArray  # (3, CELLS)
    first: FloatArray  # (C,) scratch
    second: FloatArray
    left: FloatArray  # (sets,) what is left of each set's cost on its node
    active: IntArray  # (sets,) per node, from its first set on: the sets that are possible now
    sets: IntArray  # (C,) how many
    least: FloatArray  # (C,) the least of ``left``


def fresh_tables(form: Form) -> Tables:
    tasks, count = form.fits.shape
    flows, paths, sets = max(1, len(form.src)), len(form.kappa), len(form.set_first) - 1
    return Tables(
        scale=np.zeros((tasks + 1, 2)),
        row=np.zeros((tasks + 1, flows, count)),
        limit=np.array([[[0.0, np.inf]] * 6] * (tasks + 1)),
        range=np.zeros((6, 2)),
        pair=np.zeros((max(1, len(form.pairs)), count, count)),
        domain=np.zeros((tasks, count), dtype=np.int64),
        size=np.zeros(tasks, dtype=np.int64),
        squares=np.zeros((flows, paths)),
        sums=np.zeros((flows, paths)),
        lost=np.zeros((flows, paths)),
        cell=np.zeros((3, CELLS)),
        first=np.zeros(count),
        second=np.zeros(count),
        left=np.zeros(max(1, sets)),
        active=np.zeros(max(1, sets), dtype=np.int64),
        sets=np.zeros(count, dtype=np.int64),
        least=np.zeros(count),
    )


@compiled
def together(one: FloatArray, other: FloatArray, free: FloatArray) -> bool:
    """Whether two demands fit into what a node has free."""
    return bool(one[0] + other[0] <= free[0] and one[1] + other[1] <= free[1] and one[2] + other[2] <= free[2])


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
        a_placed, b_placed = end_node(state.node_of, src), end_node(state.node_of, dst)
        ranges[f, 0], ranges[f, 1], ranges[f, 2] = np.inf, -np.inf, np.inf
        for a in _ends(tables, src, a_placed, one):
            for b in _ends(tables, dst, b_placed, two):
                pair = a * count + b
                for q in range(form.pair_first[pair], form.pair_first[pair + 1]):
                    tables.squares[f, q] = np.inf
                if (
                    a == b
                    and a_placed < 0
                    and b_placed < 0
                    and not together(form.demand[src], form.demand[dst], state.free[:, a])
                ):
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
    """Per interval of the mean utilisation the least variance; ``mean``, the limits, becomes the range."""
    count = form.node_count[r]
    low = high = state.sums[NODE_SUM + r]
    asked = 0.0
    for t in range(k, len(form.demand)):
        least, most = np.inf, 0.0
        for i in range(tables.size[t]):
            more = form.more[r, t, tables.domain[t, i]]
            least, most = min(least, more), max(most, more)
        low += least
        high += most
        asked += form.demand[t, r]
    low, high = max(mean[0], low / count), min(mean[1], high / count)
    mean[0], mean[1] = low, high
    price = 0.0
    for j in range(CELLS):
        p, q = low + (high - low) * j / CELLS, low + (high - low) * (j + 1) / CELLS
        base = state.sums[NODE_SQUARES + r] - (p + q) * state.sums[NODE_SUM + r]
        total = base
        for t in range(k, len(form.demand)):
            least = np.inf
            for i in range(tables.size[t]):
                n = tables.domain[t, i]
                more = form.more[r, t, n]
                least = min(least, more * (more + 2.0 * state.use[r, n] - p - q))
            total += least
        price = _fill_price(form, state, r, p + q, asked, price)
        tables.cell[r, j] = max(0.0, max(total, base + _filled(form, state, r, p + q, asked, price)) / count + p * q)


@compiled
def _filled(form: Form, state: State, r: int, middle: float, asked: float, price: float) -> float:
    """What the demand adds to sum of U^2 - middle*U at least if it could be spread like water; true for any price."""
    total = price * asked
    for n in range(form.fits.shape[1]):
        inverse = form.inverse_node[r, n]
        if inverse > 0.0:
            use = state.use[r, n]
            level = max(use, 0.5 * (middle + price / inverse))
            level = min(level, use + state.free[r, n] * inverse)
            total += (level - use) * (level + use - middle - price / inverse)
    return total


@compiled
def _fill_price(form: Form, state: State, r: int, middle: float, asked: float, price: float) -> float:
    """Nearly the best price for :func:`_filled`: where the water is as much as was asked for (Newton's method)."""
    for _ in range(12):
        water, slope = 0.0, 0.0
        for n in range(form.fits.shape[1]):
            inverse = form.inverse_node[r, n]
            if inverse > 0.0:
                use = state.use[r, n]
                level, top = 0.5 * (middle + price / inverse), use + state.free[r, n] * inverse
                if level >= top:
                    water += (top - use) / inverse
                elif level > use:
                    water += (level - use) / inverse
                    slope += 0.5 / inverse**2
        if abs(water - asked) <= 1e-6 * asked:
            break
        if slope == 0.0:
            if water > asked:
                break
            # Nothing rises yet: up to where the first node would.
            rise = np.inf
            for n in range(form.fits.shape[1]):
                inverse = form.inverse_node[r, n]
                if inverse > 0.0:
                    start = (2.0 * state.use[r, n] - middle) * inverse
                    if start > price and state.free[r, n] > 0.0:
                        rise = min(rise, start * (1.0 + 1e-9) + 1e-12)
            if rise == np.inf:
                break
            price = rise
        else:
            price += (asked - water) / slope
    return float(price)


@compiled
def _link_cells(form: Form, state: State, tables: Tables, ranges: FloatArray, mean: FloatArray) -> None:
    count, nodes = form.link_count, form.fits.shape[1]
    low = high = state.sums[LINK_SUM]
    for f in range(len(form.src)):
        if state.path_of[f] < 0:
            low += ranges[f, 0]
            high += ranges[f, 1]
    low, high = max(mean[0], low / count), min(mean[1], high / count)
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
        for a in _ends(tables, src, end_node(state.node_of, src), one):
            for b in _ends(tables, dst, end_node(state.node_of, dst), two):
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
    """Narrows the ranges of the three standard deviations and means to what could beat ``cut``; False: nothing can."""
    below = lost
    for r in range(3):
        if mean[r, 0] > mean[r, 1] * (1.0 + 1e-12):
            return False
        window[r, 0] = max(window[r, 0], np.sqrt(tables.cell[r].min()))
        below += form.weights[r] * window[r, 0]
    if below >= cut:
        return False
    for r in range(3):
        weight = form.weights[r]
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
def _sets(form: Form, state: State, tables: Tables, k: int, factor: FloatArray) -> None:
    """The sets of open tasks that each node could hold, with what their tasks cost each other there."""
    for n in range(form.fits.shape[1]):
        first, size, open_tasks = form.sets_of[n], 0, np.int64(0)
        for t in range(k, len(form.demand)):
            for i in range(tables.size[t]):
                if tables.domain[t, i] == n:
                    open_tasks |= np.int64(1) << t
        for s in range(first, form.sets_of[n + 1]):
            if form.set_tasks[s] & ~open_tasks == 0:
                asks = form.set_demand[s]
                if asks[0] <= state.free[0, n] and asks[1] <= state.free[1, n] and asks[2] <= state.free[2, n]:
                    tables.left[s] = factor[0] * form.set_cross[s, 0] + factor[1] * form.set_cross[s, 1]
                    tables.active[first + size] = s
                    size += 1
        tables.sets[n] = size
        tables.least[n] = 0.0


@compiled
def _push_node(form: Form, tables: Tables, unary: FloatArray, k: int, n: int, work: FloatArray, enough: float) -> None:
    """Moves costs between the node's sets and the tasks on this node, so that nothing can be moved further.

    ``work``: (4, T) scratch.
    """
    first, size, tasks = form.sets_of[n], tables.sets[n], len(form.demand)
    if size <= 1:
        return
    gain, inside, outside, here = work[0], work[1], work[2], work[3]
    forced, members = np.int64(0), 0
    for t in range(k, tasks):
        here[t] = 0.0
        elsewhere, is_here = np.inf, False
        for i in range(tables.size[t]):
            m = tables.domain[t, i]
            if m == n:
                is_here = True
            else:
                elsewhere = min(elsewhere, unary[t, m])
        if is_here and elsewhere == np.inf:
            forced |= np.int64(1) << t
        elif is_here:
            here[t] = 1.0
            members += 1
            gain[t] = unary[t, n] - elsewhere
        inside[t] = outside[t] = np.inf
    if forced:
        kept = 0
        for i in range(size):
            s = tables.active[first + i]
            if form.set_tasks[s] & forced == forced:
                tables.active[first + kept] = s
                kept += 1
        tables.sets[n] = size = kept
    if members == 0 or size == 0:
        tables.least[n] = np.inf if size == 0 else tables.left[tables.active[first]]
        for i in range(size):
            tables.least[n] = min(tables.least[n], tables.left[tables.active[first + i]])
        return
    for i in range(size):
        s = tables.active[first + i]
        value = tables.left[s]
        for j in range(form.set_first[s], form.set_first[s + 1]):
            t = form.set_member[j]
            if here[t] > 0.0:
                value += gain[t]
        tables.left[s] = value
        for t in range(k, tasks):
            if here[t] > 0.0:
                if form.set_tasks[s] >> t & 1:
                    inside[t] = min(inside[t], value)
                else:
                    outside[t] = min(outside[t], value)
    for t in range(k, tasks):
        if here[t] > 0.0:
            before = gain[t]
            # A task that no possible set holds, or that every one does, can only be elsewhere, or here.
            if inside[t] == np.inf:
                after = enough
            elif outside[t] == np.inf:
                after = -enough
            else:
                after = (inside[t] - outside[t]) / members
            unary[t, n] += after - before
            gain[t] = after
    for i in range(size):
        s = tables.active[first + i]
        for j in range(form.set_first[s], form.set_first[s + 1]):
            t = form.set_member[j]
            if here[t] > 0.0:
                tables.left[s] -= gain[t]
    # What the sets of a task still cost more than the best set goes to the task.
    for t in range(k, tasks):
        if here[t] > 0.0 and inside[t] < np.inf:
            least, within = np.inf, np.inf
            for i in range(size):
                s = tables.active[first + i]
                least = min(least, tables.left[s])
                if form.set_tasks[s] >> t & 1:
                    within = min(within, tables.left[s])
            if within > least:
                unary[t, n] += within - least
                for i in range(size):
                    s = tables.active[first + i]
                    if form.set_tasks[s] >> t & 1:
                        tables.left[s] -= within - least
    tables.least[n] = np.inf
    for i in range(size):
        tables.least[n] = min(tables.least[n], tables.left[tables.active[first + i]])


@compiled
def _chords(
    form: Form, state: State, window: FloatArray, mean: FloatArray, factor: FloatArray, middle: FloatArray
) -> float:
    """weight * std >= base + factor * (squares - middle * sum); returns the bases with what is already certain."""
    certain = state.sums[LOST]
    for r in range(3):
        width = window[r, 0] + window[r, 1]
        factor[r] = middle[r] = 0.0
        if form.weights[r] == 0.0 or width <= 0.0:
            continue
        number = form.link_count if r == 2 else form.node_count[r]
        total = state.sums[LINK_SUM] if r == 2 else state.sums[NODE_SUM + r]
        squares = state.sums[LINK_SQUARES] if r == 2 else state.sums[NODE_SQUARES + r]
        factor[r] = form.weights[r] / (width * number)
        middle[r] = mean[r, 0] + mean[r, 1]
        certain += form.weights[r] / width * (window[r, 0] * window[r, 1] + mean[r, 0] * mean[r, 1])
        certain += factor[r] * (squares - middle[r] * total)
    return float(certain)


@compiled
def _flow_tables(
    form: Form, state: State, tables: Tables, slot: int, factor: float, middle: float, enough: float, unary: FloatArray
) -> None:
    """Least costs of the open flows: into ``unary`` where one end is placed, into tables of pairs where none is."""
    count = form.fits.shape[1]
    tables.pair[:] = 0.0
    single_a, single_b = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    for f in range(len(form.src)):
        if state.path_of[f] >= 0:
            continue
        src, dst = form.src[f], form.dst[f]
        a_placed, b_placed = end_node(state.node_of, src), end_node(state.node_of, dst)
        for a in _ends(tables, src, a_placed, single_a):
            for b in _ends(tables, dst, b_placed, single_b):
                value = enough
                for q in range(form.pair_first[a * count + b], form.pair_first[a * count + b + 1]):
                    if tables.squares[f, q] < np.inf:
                        here = factor * (tables.squares[f, q] - middle * tables.sums[f, q]) + tables.lost[f, q]
                        value = min(value, here)
                if a_placed >= 0:
                    unary[dst, b] += value
                    tables.row[slot, f, b] = value
                elif b_placed >= 0:
                    unary[src, a] += value
                    tables.row[slot, f, a] = value
                elif src < dst:
                    tables.pair[form.pair_of[src, dst], a, b] += value
                else:
                    tables.pair[form.pair_of[src, dst], b, a] += value


@compiled
def _total(tables: Tables, k: int, certain: float, unary: FloatArray, reach: FloatArray) -> float:
    """The bound; the least cost of each task goes to ``reach``."""
    bound = certain
    for n in range(len(tables.least)):
        bound += tables.least[n]
    for t in range(k, len(reach)):
        least = np.inf
        for i in range(tables.size[t]):
            least = min(least, unary[t, tables.domain[t, i]])
        reach[t] = least
        bound += least
    return float(bound)


@compiled
def _narrowed(tables: Tables, k: int, slack: float, unary: FloatArray, reach: FloatArray) -> bool:
    """Takes nodes out of the domains that cost ``slack`` more than the least; whether there were any."""
    changed = False
    for t in range(k, len(reach)):
        size = 0
        for i in range(tables.size[t]):
            n = tables.domain[t, i]
            if unary[t, n] < reach[t] + slack:
                tables.domain[t, size] = n
                size += 1
            else:
                unary[t, n] = NEVER
                changed = True
        tables.size[t] = size
    return changed


@compiled
def build(
    form: Form,
    state: State,
    tables: Tables,
    k: int,
    slot: int,
    cut: float,
    sweeps: int,
    unary: FloatArray,
    reach: FloatArray,
) -> float:
    """Costs of the tasks from ``k`` on, given the state and ``tables.domain``, within the limits of ``slot``.

    ``unary`` (T, C) becomes each task's cost on each node (``NEVER``: cannot beat ``cut`` there), ``reach`` its least.
    Returns what is certain apart from these, or infinity where nothing better than ``cut`` is left.
    """
    tasks, count = form.fits.shape
    flows = len(form.src)
    ranges = np.empty((max(1, flows), 3))
    tables.range[:] = tables.limit[slot]
    window, mean = tables.range[:3], tables.range[3:]
    factor, middle, work = np.zeros(3), np.zeros(3), np.empty((4, tasks))
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
    certain = _chords(form, state, window, mean, factor, middle)
    tables.scale[slot, 0], tables.scale[slot, 1] = factor[2], middle[2]
    # Whatever is out of reach costs as much as makes no difference, so that sums stay exact.
    enough = 4.0 * (abs(cut) + abs(certain)) + 1.0
    for t in range(k, tasks):
        unary[t, :] = NEVER
        for i in range(tables.size[t]):
            n = tables.domain[t, i]
            value = 0.0
            for r in range(2):
                more = form.more[r, t, n]
                value += factor[r] * more * (more + 2.0 * state.use[r, n] - middle[r])
            unary[t, n] = value
    _flow_tables(form, state, tables, slot, factor[2], middle[2], enough, unary)
    _sets(form, state, tables, k, factor)
    before = _total(tables, k, certain, unary, reach)
    for sweep in range(sweeps):
        for n in range(count):
            _push_node(form, tables, unary, k, n, work, enough)
        for p in range(len(form.pairs)):
            number = p if sweep % 2 == 0 else len(form.pairs) - 1 - p
            one, other = form.pairs[number, 0], form.pairs[number, 1]
            if one >= k:
                _push(tables.pair[number], tables, unary, one, other)
        bound = _total(tables, k, certain, unary, reach)
        if bound >= cut:
            return np.inf
        _narrowed(tables, k, cut - bound, unary, reach)
        if bound - before < 0.01 * (cut - bound):
            break
        before = bound
    for n in range(count):
        certain += tables.least[n]
    return float(certain)


@compiled
def domains(form: Form, state: State, tables: Tables, k: int, cost: FloatArray, inherit: bool) -> bool:
    """Nodes that are left for each task from ``k`` on: with room and, where costs are inherited, none of ``NEVER``."""
    for t in range(k, len(form.demand)):
        size = 0
        after = state.node_of[form.twin[t]] if form.twin[t] >= 0 else -1
        for n in range(form.fits.shape[1]):
            if (
                (not inherit or cost[t, n] < NEVER)
                and n >= after
                and fits_now(form.fits[t, n], form.demand[t], state.free, n)
            ):
                tables.domain[t, size] = n
                size += 1
        tables.size[t] = size
        if size == 0:
            return False
    return True


@compiled
def widest(form: Form, tables: Tables) -> tuple[int, float]:
    """Which of the ranges of the latest build costs the bound most, and about how much."""
    which, most = -1, 0.0
    for r in range(3):
        low, high = tables.range[r, 0], tables.range[r, 1]
        if form.weights[r] > 0.0 and low + high > 0.0:
            loss = form.weights[r] * (high - low) ** 2 / (4.0 * (low + high))
            if loss > most:
                which, most = r, loss
            width = tables.range[3 + r, 1] - tables.range[3 + r, 0]
            loss = form.weights[r] * width**2 / (4.0 * (low + high))
            if loss > most:
                which, most = 3 + r, loss
    return which, most
