"""Ranges of the standard deviations and means within which any plan better than the best known must lie.

Per interval of the mean it bounds the variance from below. Nodes: the better of two relaxations, one with tasks
independent of each other and one that spreads all demand like water, in any amounts. Links: each flow independently.
"""

from __future__ import annotations

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.exact.form import Form
from ces_core.exact.tree_state import (
    CELLS,
    LINK_SQUARES,
    LINK_SUM,
    LOST,
    NODE_SQUARES,
    NODE_SUM,
    State,
    Tables,
    end_node,
    ends,
    path_cost,
    together,
)
from ces_core.model.problem import FloatArray


@compiled
def open_flows(form: Form, state: State, tables: Tables, ranges: FloatArray) -> bool:
    """Computes the cost of every path of the open flows; per flow the smallest and largest sum and the smallest loss.

    Returns False where a flow has no feasible path left.
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
        for a in ends(tables, src, a_placed, one):
            for b in ends(tables, dst, b_placed, two):
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
def node_cells(form: Form, state: State, tables: Tables, k: int, r: int, mean: FloatArray) -> None:
    """Per interval of the mean utilisation, the smallest variance; ``mean`` holds the limits and receives the range."""
    count = form.node_count[r]
    low = high = state.sums[NODE_SUM + r]
    asked = 0.0
    for t in range(k, len(form.demand)):
        least, largest = np.inf, 0.0
        for i in range(tables.size[t]):
            more = form.more[r, t, tables.domain[t, i]]
            least, largest = min(least, more), max(largest, more)
        low += least
        high += largest
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
    """Lower bound on what the demand adds to the sum of U^2 - middle*U if it could be spread like water; valid for any
    price."""
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
    """Nearly optimal price for :func:`_filled`, where the water level meets the demand (Newton's method)."""
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
            # No node is filled yet: move to where the first one would be.
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
def link_cells(form: Form, state: State, tables: Tables, ranges: FloatArray, mean: FloatArray) -> None:
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
        for a in ends(tables, src, end_node(state.node_of, src), one):
            for b in ends(tables, dst, end_node(state.node_of, dst), two):
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
def windows(form: Form, tables: Tables, lost: float, cut: float, mean: FloatArray, window: FloatArray) -> bool:
    """Narrows the ranges of the three standard deviations and means to those that could beat ``cut``. Returns False if
    none can."""
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
def chords(
    form: Form, state: State, window: FloatArray, mean: FloatArray, factor: FloatArray, middle: FloatArray
) -> float:
    """weight * std >= base + factor * (squares - middle * sum); returns the bases plus the cost that is already
    certain."""
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
def widest(form: Form, tables: Tables) -> tuple[int, float]:
    """The range of the latest build that costs the bound most, and an estimate of that cost."""
    which, largest = -1, 0.0
    for r in range(3):
        low, high = tables.range[r, 0], tables.range[r, 1]
        if form.weights[r] > 0.0 and low + high > 0.0:
            loss = form.weights[r] * (high - low) ** 2 / (4.0 * (low + high))
            if loss > largest:
                which, largest = r, loss
            width = tables.range[3 + r, 1] - tables.range[3 + r, 0]
            loss = form.weights[r] * width**2 / (4.0 * (low + high))
            if loss > largest:
                which, largest = 3 + r, loss
    return which, largest
