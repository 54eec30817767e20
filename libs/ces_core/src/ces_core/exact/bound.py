"""Lower bound on the cost of completing a partial placement, from tables over tasks, pairs of tasks and nodes.

For a standard deviation s within [a, b], the chord of the square root gives s >= (s^2 + a*b) / (a + b), and for a mean
m within [p, q], -m^2 >= -(p + q) m + p*q. This turns Z' into a sum of squares that splits over tasks, flows, and the
sets of tasks that a node could hold; what two flows add on one link (never negative) is ignored until they are placed.
The minimum of the sum is bounded by moving costs from the tables of flows and nodes to those of single tasks (MPLP: A.
Globerson and T. Jaakkola, NIPS 2007): totals stay the same, and the sum of the single minima rises.
"""

from __future__ import annotations

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.exact.form import Form
from ces_core.exact.ranges import chords, link_cells, node_cells, open_flows, windows
from ces_core.exact.tree_state import LOST, State, Tables, end_node, ends, fits_now
from ces_core.model.problem import FloatArray

NEVER = 1e9
"""Finite stand-in for infinity in sums of costs; all costs are scaled to stay far below it."""


@compiled
def _push(pair: FloatArray, tables: Tables, unary: FloatArray, one: int, other: int) -> None:
    """Moves costs between the table of a pair of tasks and the tables of the two until nothing more can be moved."""
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
    """Lists the sets of open tasks that each node could hold, with the costs their tasks impose on each other there."""
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
    """Moves costs between the node's sets and the tasks on this node until nothing more can be moved.

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
            # A task in no possible set must be elsewhere; a task in every set must be here.
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
    # The excess of a task's sets over the best set is moved to the task.
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
def _flow_tables(
    form: Form, state: State, tables: Tables, slot: int, factor: float, middle: float, enough: float, unary: FloatArray
) -> None:
    """Minimum costs of open flows: into ``unary`` where one end is placed, into tables of pairs where none is."""
    count = form.fits.shape[1]
    tables.pair[:] = 0.0
    single_a, single_b = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    for f in range(len(form.src)):
        if state.path_of[f] >= 0:
            continue
        src, dst = form.src[f], form.dst[f]
        a_placed, b_placed = end_node(state.node_of, src), end_node(state.node_of, dst)
        for a in ends(tables, src, a_placed, single_a):
            for b in ends(tables, dst, b_placed, single_b):
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
    """The bound; the minimum cost of each task is written to ``reach``."""
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
    """Removes nodes from the domains that cost ``slack`` more than the minimum. Returns whether there were any."""
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
    """Builds the cost tables of tasks from ``k`` on, given the state and ``tables.domain``, within the limits of
    ``slot``.

    ``unary`` (T, C) receives each task's cost on each node (``NEVER``: cannot beat ``cut`` there), ``reach`` its
    minimum. Returns the cost that is certain besides these, or infinity where nothing better than ``cut`` is left.
    """
    tasks, count = form.fits.shape
    flows = len(form.src)
    ranges = np.empty((max(1, flows), 3))
    tables.range[:] = tables.limit[slot]
    window, mean = tables.range[:3], tables.range[3:]
    factor, middle, work = np.zeros(3), np.zeros(3), np.empty((4, tasks))
    if not open_flows(form, state, tables, ranges):
        return np.inf
    lost = state.sums[LOST]
    for f in range(flows):
        if state.path_of[f] < 0:
            lost += ranges[f, 2]
    for r in range(2):
        node_cells(form, state, tables, k, r, mean[r])
    link_cells(form, state, tables, ranges, mean[2])
    if not windows(form, tables, lost, cut, mean, window):
        return np.inf
    certain = chords(form, state, window, mean, factor, middle)
    tables.scale[slot, 0], tables.scale[slot, 1] = factor[2], middle[2]
    # Unreachable entries get a cost just large enough to be excluded, so that sums stay exact.
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
    """Lists the nodes left for each task from ``k`` on: those that fit and, where costs are inherited, do not cost
    ``NEVER``."""
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
