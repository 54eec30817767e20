"""Paths and rates of single flows while all others stay: what maximises J.

J as a function of one rate is concave apart from soft deadlines that are missed, so golden sections find its maximum,
and its ends are looked at besides.
"""

from __future__ import annotations

import math

from ces_core.compiled.jit import inner
from ces_core.search.goals.compiled.state import (
    LATE,
    LINKS,
    LINKS_SQUARES,
    TIGHT,
    GoalState,
    carry,
    deviation,
    message_ms,
    value,
)
from ces_core.search.goals.compiled.view import BALANCE, BANDWIDTH, TIME, WATT, GoalView

SECTIONS = 18
"""Golden sections: they narrow a range to 2e-4 of its width."""
GOLDEN = 0.6180339887498949
NEAR = 1e-4
"""Share of a range: where J rises up to the end over this last part, the end is taken."""


@inner
def best_rate(goal: GoalView, state: GoalState, s: int, f: int, q: int) -> float:
    """The best rate of a flow, which is not carried now, on a path; -1 where its minimum does not fit."""
    first, last = goal.path_first[q], goal.path_first[q + 1]
    wide: float = goal.high[f]
    low: float = goal.low[f]
    if first == last:
        return wide
    slope, step, squares, cross, delay = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(first, last):
        r, times = goal.path_resource[i], goal.path_times[i]
        wide = min(wide, (goal.residual[r] - state.load[s, r]) / times)
        inverse = goal.link_inverse[r]
        step += inverse
        squares += inverse * inverse
        cross += 2.0 * inverse * (goal.link_use[r] + state.load[s, r] * inverse)
        slope -= goal.aims[WATT] * goal.link_w[r]
        delay += goal.delay[r]
    if wide < low:
        return -1.0
    if wide == low:
        return wide
    if goal.high[f] > low:
        slope += goal.aims[BANDWIDTH] / (goal.high[f] - low)
    line = (slope, goal.aims[BALANCE] * goal.weights[2], step, squares, cross, delay)
    top = _worth(goal, state, s, f, line, wide)
    best, most = wide, top
    bottom = _worth(goal, state, s, f, line, low)
    if bottom > most:
        best, most = low, bottom
    if _worth(goal, state, s, f, line, wide - NEAR * (wide - low)) > top:
        left, right = low, wide
        a, b = right - GOLDEN * (right - left), left + GOLDEN * (right - left)
        at_a, at_b = _worth(goal, state, s, f, line, a), _worth(goal, state, s, f, line, b)
        for _ in range(SECTIONS):
            if at_a >= at_b:
                right, b, at_b = b, a, at_a
                a = right - GOLDEN * (right - left)
                at_a = _worth(goal, state, s, f, line, a)
            else:
                left, a, at_a = a, b, at_b
                b = left + GOLDEN * (right - left)
                at_b = _worth(goal, state, s, f, line, b)
        if at_a > most:
            best, most = a, at_a
        if at_b > most:
            best, most = b, at_b
    return best


@inner
def _worth(
    goal: GoalView,
    state: GoalState,
    s: int,
    f: int,
    line: tuple[float, float, float, float, float, float],
    rate: float,
) -> float:
    """The part of J that depends on the flow's rate. ``line``: J for a unit of the rate; J for a unit of the links'
    deviation; the sums over the path's links of 1 / capacity, of its squares, and of twice its product with the use;
    the path's delay."""
    slope, spread, step, squares, cross, delay = line
    total = slope * rate
    if spread > 0.0:
        use = state.sums[s, LINKS] + step * rate
        use_squares = state.sums[s, LINKS_SQUARES] + rate * (cross + squares * rate)
        total -= spread * deviation(use, use_squares, goal.link_sums[0])
    if goal.message[f] == 0.0:
        return total
    ms = delay + message_ms(goal, f, rate)
    broken = 0.0
    for g in range(len(goal.deadline)):
        longest, passed = 0.0, False
        for k in range(goal.class_first[g], goal.class_first[g + 1]):
            passed = passed or goal.passes[f, k] > 0.0
            longest = max(longest, state.chain_ms[s, k] + goal.passes[f, k] * ms)
        if not passed:
            continue
        share = longest / goal.deadline[g]
        if not goal.hard[g]:
            total += goal.aims[TIME] * max(0.0, 1.0 - share)
        elif share > 1.0 + TIGHT:
            broken += share - 1.0
    return total - LATE * (1.0 + broken) if broken > 0.0 else total


@inner
def route(goal: GoalView, state: GoalState, s: int, f: int) -> bool:
    """Leads a flow, which is not carried now, over the path and at the rate where J is highest. Where its minimum fits
    beside the others' minimums alone, others are cut back to these. False where it does not fit."""
    best, best_path, best_origin, best_speed = -math.inf, -1, -1, 0.0
    count = len(goal.nodes)
    src, dst = goal.flow_src[f], goal.flow_dst[f]
    end = state.node_of[s, dst] if dst >= 0 else -1 - dst
    options = 1 if src >= 0 else goal.sources_first[f + 1] - goal.sources_first[f]
    for i in range(options):
        origin = state.node_of[s, src] if src >= 0 else goal.sources[goal.sources_first[f] + i]
        pair = origin * count + end
        for q in range(goal.pair_first[pair], goal.pair_first[pair + 1]):
            rate = best_rate(goal, state, s, f, q)
            if rate < 0.0:
                continue
            if options == 1 and goal.pair_first[pair + 1] - goal.pair_first[pair] == 1:
                carry(goal, state, s, f, origin, q, rate, 1)
                return True
            carry(goal, state, s, f, origin, q, rate, 1)
            worth = value(goal, state, s)
            carry(goal, state, s, f, origin, q, rate, -1)
            if worth > best:
                best, best_path, best_origin, best_speed = worth, q, origin, rate
    if best_path >= 0:
        carry(goal, state, s, f, best_origin, best_path, best_speed, 1)
        return True
    for i in range(options):
        origin = state.node_of[s, src] if src >= 0 else goal.sources[goal.sources_first[f] + i]
        pair = origin * count + end
        for q in range(goal.pair_first[pair], goal.pair_first[pair + 1]):
            if _make_way(goal, state, s, f, q):
                rate = best_rate(goal, state, s, f, q)
                if rate >= 0.0:
                    carry(goal, state, s, f, origin, q, rate, 1)
                    return True
    return False


@inner
def _make_way(goal: GoalView, state: GoalState, s: int, f: int, q: int) -> bool:
    """Cuts the flows that share a crowded link of the path back to their minimums; False where that is not enough."""
    low = goal.low[f]
    for i in range(goal.path_first[q], goal.path_first[q + 1]):
        r, times = goal.path_resource[i], goal.path_times[i]
        if state.reserve[s, r] + times * low > goal.residual[r]:
            return False
    for other in range(state.path.shape[1]):
        p, rate = state.path[s, other], state.rate[s, other]
        if p < 0 or rate <= goal.low[other]:
            continue
        crossing = False
        for i in range(goal.path_first[q], goal.path_first[q + 1]):
            r = goal.path_resource[i]
            if state.load[s, r] + goal.path_times[i] * low <= goal.residual[r]:
                continue
            for j in range(goal.path_first[p], goal.path_first[p + 1]):
                crossing = crossing or goal.path_resource[j] == r
        if crossing:
            origin = state.origin[s, other]
            carry(goal, state, s, other, origin, p, rate, -1)
            carry(goal, state, s, other, origin, p, goal.low[other], 1)
    return True


@inner
def settle(goal: GoalView, state: GoalState, s: int, reroute: bool) -> None:
    """Sets the rate of each flow in turn to its best while the others stay; with ``reroute`` its path, too."""
    for f in range(state.path.shape[1]):
        q = state.path[s, f]
        if q < 0 or (goal.path_first[q] == goal.path_first[q + 1] and not reroute):
            continue
        rate, origin = state.rate[s, f], state.origin[s, f]
        carry(goal, state, s, f, origin, q, rate, -1)
        if reroute and route(goal, state, s, f):
            continue
        found = best_rate(goal, state, s, f, q)
        carry(goal, state, s, f, origin, q, rate if found < 0.0 else found, 1)
