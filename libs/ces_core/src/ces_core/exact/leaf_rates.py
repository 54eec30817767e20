"""Optimal rates for flows with fixed nodes and paths, with a proof, by a primal-dual interior point method.

It minimises w3*std(U_links) + sum over flows of (1 - y) / F over y in [0, 1] (rate = min + y * (max - min)) within the
capacities; see S. Boyd and L. Vandenberghe, Convex Optimization, 11.7. The lower bound does not rely on convergence:
for any h with sum zero and norm at most 1/sqrt(E), std(U) >= h.U, and for any prices >= 0 the rest is a sum over flows.
Where links are loaded alike, std(U) has a kink, and h is solved for instead of read from deviations that are rounding.
"""

from __future__ import annotations

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.exact.form import Form
from ces_core.exact.tree_state import spread
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray

ROUNDS = 80
GAP = 1e-13
"""The iteration ends when the duality gap is below this."""
CENTRE = 12.0
"""How much nearer to the optimum each step aims."""
SMOOTH = 1e-26
"""Added to the variance, so that the deviation has a slope at zero."""
UNPROVEN = 1e-9
"""A gap above this between the cost and its bound is worth a second look."""
KINK = 1e-4
"""A deviation below this, from sums of squares, is too much rounding for a direction whose norm rests on it."""
WITHIN = 1e-9
"""A flow whose share of its range is this far from 0 and 1 is within its limits."""


@compiled
def best_rates(form: Form, path_of: IntArray, rates: FloatArray) -> tuple[float, float]:
    """Fills ``rates`` (F,) and returns their cost and a lower bound on the cost of any rates on these paths.

    Both are infinite where the minimums do not fit.
    """
    flows, count = len(form.src), form.link_count
    share = 1.0 / max(1, flows)
    # Resources of these paths, renumbered.
    number = np.full(len(form.residual), -1, dtype=np.int64)
    touched = np.empty(len(form.residual), dtype=np.int64)
    links = 0
    for f in range(flows):
        q = path_of[f]
        for i in range(form.path_first[q], form.path_first[q + 1]):
            if number[form.resource[i]] < 0:
                number[form.resource[i]] = links
                touched[links] = form.resource[i]
                links += 1
    residual: FloatArray = np.empty(links)
    use: FloatArray = np.empty(links)
    wanted = np.zeros(links)
    for i in range(links):
        residual[i], use[i] = form.residual[touched[i]], form.link_use[touched[i]]
    for f in range(flows):
        q = path_of[f]
        rates[f] = form.low[f] if form.path_first[q] < form.path_first[q + 1] else form.high[f]
        for i in range(form.path_first[q], form.path_first[q + 1]):
            j = number[form.resource[i]]
            residual[j] -= form.low[f] * form.times[i]
            wanted[j] += (form.high[f] - form.low[f]) * form.times[i]
            use[j] += form.low[f] * form.times[i] * form.inverse[form.resource[i]]
    for j in range(links):
        scale = form.residual[touched[j]]
        if residual[j] < -1e-13 * scale:
            return np.inf, np.inf
        if residual[j] <= 1e-12 * scale:
            residual[j] = 0.0
    # Flows with a choice: between nodes, max above min, and residual capacity on the whole path.
    chosen = np.empty(flows, dtype=np.int64)
    n = 0
    for f in range(flows):
        q = path_of[f]
        free = form.high[f] > form.low[f] and form.path_first[q] < form.path_first[q + 1]
        for i in range(form.path_first[q], form.path_first[q + 1]):
            free = free and residual[number[form.resource[i]]] > 0.0
        if free:
            chosen[n] = f
            n += 1
    row_of = np.full(links, -1, dtype=np.int64)
    rows = 0
    for j in range(links):
        if residual[j] > 0.0 and wanted[j] > residual[j]:
            row_of[j] = rows
            rows += 1
    load, price = np.zeros((links, n)), np.zeros((rows, n))
    limit = np.empty(rows)
    for j in range(links):
        if row_of[j] >= 0:
            limit[row_of[j]] = 1.0
    for v in range(n):
        f = chosen[v]
        q = path_of[f]
        for i in range(form.path_first[q], form.path_first[q + 1]):
            j = number[form.resource[i]]
            more = (form.high[f] - form.low[f]) * form.times[i]
            load[j, v] += more * form.inverse[form.resource[i]]
            if row_of[j] >= 0:
                price[row_of[j], v] += more / residual[j]
    # Links that no flow touches count with their current utilisation.
    other_sum, other_squares = form.link_sum, form.link_squares
    for j in range(links):
        before = form.link_use[touched[j]]
        other_sum -= before
        other_squares -= before * before
    fixed_loss = 0.0
    for f in range(flows):
        if form.high[f] > form.low[f]:
            fixed_loss += share * (form.high[f] - rates[f]) / (form.high[f] - form.low[f])
    weight = form.weights[2]
    y, slope, prices = np.zeros(n), np.zeros(links), np.zeros(rows)
    if n:
        _interior(load, price, limit, use, other_sum, other_squares, count, weight, share, y, prices)
    level = use + load @ y
    total, squares = other_sum + float(level.sum()), other_squares + float(level @ level)
    deviation = spread(total, squares, count)
    cost = weight * deviation + fixed_loss - share * y.sum()
    for v in range(n):
        f = chosen[v]
        rates[f] = form.low[f] + y[v] * (form.high[f] - form.low[f])
    # The proof: h is the deviations, scaled; links that are not touched enter by their sums alone.
    mean = total / count
    norm = 1.0 / (count * np.sqrt(deviation * deviation + SMOOTH))
    slope[:] = weight * norm * (level - mean)
    # sum over all links of (U_l - mean) * U0_l, of which the touched ones have U at y = 0.
    proven = weight * norm * (other_squares - mean * other_sum) + slope @ use + fixed_loss
    proven -= prices @ limit
    charge = load.T @ slope + price.T @ prices - share
    for v in range(n):
        proven += min(0.0, charge[v])
    if weight > 0.0 and deviation < KINK:
        proven = -np.inf if n else cost
    if proven < cost - UNPROVEN and weight > 0.0 and n:
        # Two directions, and prices as they are and without those of rows that have capacity to spare.
        counted = np.zeros(links)  # media have no deviation
        for j in range(links):
            counted[j] = 1.0 if form.inverse[touched[j]] > 0.0 else 0.0
        for _ in range(2):
            outer = price.T @ prices - share
            rest = fixed_loss - prices @ limit
            proven = max(proven, rest + _along(level - mean, True, counted, load, use, other_sum, count, weight, outer))
            h = _balanced(load, count, weight, y, outer)
            proven = max(proven, rest + _along(h, False, counted, load, use, other_sum, count, weight, outer))
            left = limit - price @ y
            for r in range(rows):
                if left[r] > WITHIN:
                    prices[r] = 0.0
    return cost, min(cost, proven)


@compiled
def _along(
    direction: FloatArray,
    full: bool,
    counted: FloatArray,
    load: FloatArray,
    use: FloatArray,
    other_sum: float,
    count: float,
    weight: float,
    outer: FloatArray,
) -> float:
    """Lower bound on weight * std(U(y)) + outer @ y over y in [0, 1] by an h along ``direction``, which is that of the
    links that flows touch (``counted``: 1, media: 0); all others get the same, so that the sum is zero.

    ``full``: the norm is made 1/sqrt(E); else only shrunk to it. Mean and norm are made right on h itself, so that the
    bound holds wherever the direction comes from; -inf where that overflows.
    """
    untouched = count - counted.sum()
    h = direction * counted
    rest = -h.sum() / untouched if untouched > 0.0 else 0.0
    for _ in range(2):
        mean = (h.sum() + untouched * rest) / count
        h -= mean * counted
        rest -= mean
        norm = np.sqrt((h @ h + untouched * rest * rest) * count)
        if norm > 1.0 or (full and norm > 0.0):
            h /= norm
            rest /= norm
    value = weight * (h @ use + rest * other_sum)
    pull = load.T @ h
    for v in range(len(outer)):
        value += min(0.0, weight * pull[v] + outer[v])
    return float(value) if np.isfinite(value) else -np.inf


@compiled
def _balanced(load: FloatArray, count: float, weight: float, y: FloatArray, outer: FloatArray) -> FloatArray:
    """The direction of least norm in which the deviation balances ``outer`` for the flows within their limits."""
    n = load.shape[1]
    sums = load.sum(axis=0)
    gram = load.T @ load - np.outer(sums, sums) / count  # products of the centred columns
    matrix, target = np.eye(n), np.zeros(n)
    for v in range(n):
        if WITHIN < y[v] < 1.0 - WITHIN:
            target[v] = -outer[v] / weight
            for u in range(n):
                if WITHIN < y[u] < 1.0 - WITHIN:
                    matrix[v, u] = gram[v, u]
            matrix[v, v] += 1e-12 * (load[:, v] ** 2).sum() + 1e-30
    factor = _solved(matrix, target)
    direction: FloatArray = load @ factor - (sums @ factor) / count
    return direction


@compiled
def _interior(
    load: FloatArray,
    price: FloatArray,
    limit: FloatArray,
    use: FloatArray,
    other_sum: float,
    other_squares: float,
    count: float,
    weight: float,
    share: float,
    y: FloatArray,
    prices: FloatArray,
) -> None:
    """Minimises over 0 <= y <= 1, price @ y <= limit; leaves the optimum in ``y`` and the rows' duals in ``prices``."""
    n, rows = len(y), len(limit)
    start = 0.5
    for r in range(rows):
        start = min(start, 0.5 * limit[r] / max(1e-300, price[r].sum()))
    y[:] = start
    left = limit - price @ y
    low, high = share / y, share / (1.0 - y)
    prices[:] = share / left
    sums = load.sum(axis=0)
    product = load.T @ load
    grade, matrix = np.empty(n), np.empty((n, n))
    for _ in range(ROUNDS):
        level = use + load @ y
        total = other_sum + level.sum()
        mean = total / count
        deviation = np.sqrt(max(0.0, (other_squares + level @ level) / count - mean * mean) + SMOOTH)
        grade[:] = load.T @ (level - mean) / (count * deviation)
        dual = weight * grade - share + price.T @ prices + high - low
        gap = y @ low + (1.0 - y) @ high + left @ prices
        if gap < GAP and np.abs(dual).max() < 1e-11:
            break
        aim = gap / (2 * n + rows) / CENTRE
        bend = weight / deviation
        for v in range(n):
            for u in range(v + 1):
                value = bend * (product[v, u] / count - sums[v] * sums[u] / count**2 - grade[v] * grade[u])
                for r in range(rows):
                    value += prices[r] / left[r] * price[r, v] * price[r, u]
                matrix[v, u] = value
            matrix[v, v] += low[v] / y[v] + high[v] / (1.0 - y[v]) + 1e-14
        target = -(weight * grade - share + price.T @ (aim / left) + aim / (1.0 - y) - aim / y)
        step = _solved(matrix, target)
        if not np.isfinite(step).all():
            break  # at a kink: what there is serves, and its bound holds
        d_left = -(price @ step)
        d_low = aim / y - low - low / y * step
        d_high = aim / (1.0 - y) - high + high / (1.0 - y) * step
        d_prices = aim / left - prices - prices / left * d_left
        step_length = 1.0
        for v in range(n):
            if step[v] < 0.0:
                step_length = min(step_length, -0.995 * y[v] / step[v])
            elif step[v] > 0.0:
                step_length = min(step_length, 0.995 * (1.0 - y[v]) / step[v])
            if d_low[v] < 0.0:
                step_length = min(step_length, -0.995 * low[v] / d_low[v])
            if d_high[v] < 0.0:
                step_length = min(step_length, -0.995 * high[v] / d_high[v])
        for r in range(rows):
            if d_left[r] < 0.0:
                step_length = min(step_length, -0.995 * left[r] / d_left[r])
            if d_prices[r] < 0.0:
                step_length = min(step_length, -0.995 * prices[r] / d_prices[r])
        y += step_length * step
        low += step_length * d_low
        high += step_length * d_high
        prices += step_length * d_prices
        left = limit - price @ y
        if left.size and left.min() <= 0.0:
            y -= step_length * step
            break


@compiled
def _solved(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """Solves matrix @ x = target by Cholesky factorisation; reads and overwrites the lower half of a positive definite
    matrix."""
    n = len(target)
    answer = target.copy()
    for i in range(n):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = np.sqrt(max(value, 1e-300)) if i == j else value / matrix[j, j]
        value = answer[i]
        for k in range(i):
            value -= matrix[i, k] * answer[k]
        answer[i] = value / matrix[i, i]
    for i in range(n - 1, -1, -1):
        value = answer[i]
        for k in range(i + 1, n):
            value -= matrix[k, i] * answer[k]
        answer[i] = value / matrix[i, i]
    return answer
