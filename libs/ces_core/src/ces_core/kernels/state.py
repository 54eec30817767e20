"""Where all tasks are, what that is worth, and what it would be worth with a few tasks elsewhere.

A plan that fits scores its composite, and where the view says what room is worth (:mod:`ces_core.kernels.worth`), also
what it leaves behind. A state may also break capacities: then its score is lowered by how much, so that a search can
pass through such states on its way to better plans, and finds its way to plans that fit.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork, exchange, fill
from ces_core.kernels.jit import compiled, inner
from ces_core.kernels.worth import link_worth, links_change, node_worth
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

NO_WAY = 100.0
"""What it costs when a flow has no path at all."""
SHORTAGE_COST = 1.5
"""What it costs when all minimums lack room; a part costs in proportion."""
OVERLOAD_COST = 3.0
"""What it costs when all tasks lack room on their nodes; a part costs in proportion."""
ROUGH, THOROUGH = cast(bool, np.False_), cast(bool, np.True_)
"""Whether bandwidth is exchanged between flows. (A plain False or True would be a type of its own to the compiler.)"""
SETTLING = 0.02
"""What settling rates may add to a score at most, as far as a search reckons."""
UNFIT_SATISFACTION = 0.5
"""The bandwidth satisfaction that is assumed where the minimums do not fit."""


class State(NamedTuple):
    """T tasks on C candidates, F flows over R resources."""

    node_of: IntArray  # (T,)
    path: IntArray  # (F,) -1: there is none
    rates: FloatArray  # (F,)
    score: FloatArray  # (1,)
    fits: NDArray[np.bool_]  # (2,) whether the state breaks no capacity; whether the latest trial did not
    free: FloatArray  # (3, C) what the tasks leave, below zero where they do not fit
    use: FloatArray  # (2, C)
    node_sums: FloatArray  # (2, 2) of CPU and memory: sum of utilisations, sum of squares
    ahead: FloatArray  # (1,) by how much the tasks change what nodes are worth to later jobs; unused without worth
    asked: FloatArray  # (3,) what all tasks ask for together
    spare: FloatArray  # (R,) room that the rates leave
    reserve: FloatArray  # (R,) room that the minimums leave
    link_use: FloatArray  # (R,)
    link_sums: FloatArray  # (2,)
    # What the latest trial came to.
    trial_path: IntArray  # (F,)
    trial_rates: FloatArray  # (F,)
    guess: FloatArray  # (F,) rates while paths are chosen
    affected: IntArray  # (F,) flows that the trial routes anew
    is_affected: NDArray[np.bool_]  # (F,)


@compiled
def new_state(view: Compact) -> State:
    """Room for a state; :func:`install` fills it."""
    tasks, candidates = view.fits.shape
    flows = len(view.low)
    return State(
        node_of=np.zeros(tasks, dtype=np.int64),
        path=np.zeros(flows, dtype=np.int64),
        rates=np.zeros(flows),
        score=np.zeros(1),
        fits=np.zeros(2, dtype=np.bool_),
        free=np.zeros((3, candidates)),
        use=np.zeros((2, candidates)),
        node_sums=np.zeros((2, 2)),
        ahead=np.zeros(1),
        asked=np.maximum(view.demand.sum(axis=0), 1e-300),
        spare=view.room.copy(),
        reserve=view.room.copy(),
        link_use=view.link_use.copy(),
        link_sums=np.array([view.link_sum, view.link_squares]),
        trial_path=np.full(flows, -1, dtype=np.int64),
        trial_rates=np.zeros(flows),
        guess=np.zeros(flows),
        affected=np.zeros(flows, dtype=np.int64),
        is_affected=np.zeros(flows, dtype=np.bool_),
    )


@compiled
def install(view: Compact, work: FillWork, state: State, placement: IntArray) -> None:
    """Puts the tasks where ``placement`` (T,) says, with newly chosen paths and rates."""
    flows = len(view.low)
    for f in range(flows):
        _clear(view, state, state.path[f])
        state.path[f] = -1
        state.affected[f] = f
    _rebuild(view, state, placement)
    _route(view, state, placement, flows)
    for f in range(flows):
        state.path[f] = state.trial_path[f]
        _carry(view, state, state.path[f], -state.guess[f], -view.low[f])
    overload = _overload(state, placement)
    score = _score(view, work, state, overload, state.path, state.rates, THOROUGH)
    _rebuild(view, state, placement)
    state.score[0] = score
    state.fits[0] = state.fits[1]


@compiled
def attempt(
    view: Compact,
    work: FillWork,
    state: State,
    placement: IntArray,
    changed: IntArray,
    count: int,
    worth: float,
    thorough: bool,
) -> float:
    """The score with the first ``count`` tasks of ``changed`` where ``placement`` (T,) has them; the state stays.

    Where the nodes alone, or the rates guessed with the paths, show that no more than ``worth`` can come of it, what
    can is returned, and nothing further looked at. Otherwise ``trial_path`` and ``trial_rates`` hold what
    :func:`accept` would take over. ``thorough``: bandwidth is exchanged between flows too.
    """
    for i in range(count):
        _put(view, state, changed[i], state.node_of[changed[i]], -1.0)
    for i in range(count):
        _put(view, state, changed[i], placement[changed[i]], 1.0)
    state.fits[1] = False
    overload = _overload(state, placement)
    score = 1.0 - 0.5 * _node_imbalance(view, state) - OVERLOAD_COST * overload + _ahead(view, state)
    if score > worth:
        flows = _affected(view, state, changed, count)
        for f in range(len(view.low)):
            state.trial_path[f] = state.path[f]
            state.guess[f] = state.rates[f]
        for i in range(flows):
            f = state.affected[i]
            _carry(view, state, state.path[f], -state.rates[f], -view.low[f])
        _route(view, state, placement, flows)
        hoped, settled = outright(view, state, overload, flows)
        if settled:
            score = hoped
            state.trial_rates[:] = view.high
            state.fits[1] = overload == 0.0
        elif thorough or not state.fits[0] or hoped + SETTLING > worth:
            score = _score(view, work, state, overload, state.trial_path, state.trial_rates, thorough)
        else:
            score = hoped
        for i in range(flows):
            f = state.affected[i]
            _carry(view, state, state.trial_path[f], -state.guess[f], -view.low[f])
            _carry(view, state, state.path[f], state.rates[f], view.low[f])
    for i in range(count):
        _put(view, state, changed[i], placement[changed[i]], -1.0)
    for i in range(count):
        _put(view, state, changed[i], state.node_of[changed[i]], 1.0)
    return score


@inner
def outright(view: Compact, state: State, overload: float, flows: int) -> tuple[float, bool]:
    """(score, settled) with the rates that are guessed while the paths of ``flows`` affected flows are chosen. Settled:
    every flow has its maximum and there is room for all, so that this is the score, unless less bandwidth would be
    better balanced. (A rate that is a choice is guessed below its maximum where that has no room; one that is given
    is not.)"""
    count = len(view.low)
    if len(view.worth) > 0:
        return math.inf, False
    lost, room = 0.0, True
    for f in range(count):
        span, q = view.high[f] - view.low[f], state.trial_path[f]
        if q < 0:
            return -math.inf, False
        if span > 0.0:
            lost += (view.high[f] - state.guess[f]) / span
            continue
        for i in range(view.path_first[q], view.path_first[q + 1]):
            room = room and state.spare[view.path_resource[i]] >= 0.0
    mean = state.link_sums[0] / view.link_count
    spread = math.sqrt(max(state.link_sums[1] / view.link_count - mean * mean, 0.0))
    value = 1.0 - (lost / count if count else 0.0) - view.weights[2] * spread
    score = 0.5 - 0.5 * _node_imbalance(view, state) - OVERLOAD_COST * overload + 0.5 * value
    known = state.fits[0] or flows == count
    return score, known and room and lost <= 0.0


@compiled
def attempt_path(view: Compact, work: FillWork, state: State, flow: int, path: int) -> float:
    """The score with one flow on another path; the state stays."""
    for f in range(len(view.low)):
        state.trial_path[f] = state.path[f]
    state.trial_path[flow] = path
    overload = _overload(state, state.node_of)
    return _score(view, work, state, overload, state.trial_path, state.trial_rates, THOROUGH)


@compiled
def accept(view: Compact, state: State, placement: IntArray, score: float) -> None:
    """Takes over the latest trial, which put the tasks as in ``placement`` and scored ``score``."""
    for f in range(len(view.low)):
        _clear(view, state, state.path[f])
        state.path[f] = state.trial_path[f]
        state.rates[f] = state.trial_rates[f]
    _rebuild(view, state, placement)
    state.score[0] = score
    # Whether the tasks fit is judged by sums made afresh, not by those that many trials have gone through.
    state.fits[0] = state.fits[1] and _overload(state, placement) == 0.0


@inner
def _rebuild(view: Compact, state: State, placement: IntArray) -> None:
    """Everything that follows from placement, paths and rates, from scratch: no rounding error lives on."""
    state.free[:] = view.free
    state.use[:] = view.use
    for row in range(2):
        state.node_sums[row, 0] = view.node_sum[row]
        state.node_sums[row, 1] = view.node_squares[row]
    if len(view.worth) > 0:
        state.ahead[0] = 0.0
    for t in range(len(placement)):
        state.node_of[t] = placement[t]
        _put(view, state, t, placement[t], 1.0)
    for f in range(len(view.low)):
        _clear(view, state, state.path[f])
    state.link_sums[0], state.link_sums[1] = view.link_sum, view.link_squares
    for f in range(len(view.low)):
        _carry(view, state, state.path[f], state.rates[f], view.low[f])


@inner
def _clear(view: Compact, state: State, q: int) -> None:
    if q >= 0:
        for i in range(view.path_first[q], view.path_first[q + 1]):
            r = view.path_resource[i]
            state.spare[r] = state.reserve[r] = view.room[r]
            state.link_use[r] = view.link_use[r]


@inner
def _put(view: Compact, state: State, task: int, node: int, sign: float) -> None:
    if len(view.worth) > 0:
        state.ahead[0] -= node_worth(view, state.free[0, node], state.free[1, node])
    for row in range(3):
        state.free[row, node] -= sign * view.demand[task, row]
    if len(view.worth) > 0:
        state.ahead[0] += node_worth(view, state.free[0, node], state.free[1, node])
    for row in range(2):
        more = sign * view.demand[task, row] * view.inverse[row, node]
        before = state.use[row, node]
        state.use[row, node] = before + more
        state.node_sums[row, 0] += more
        state.node_sums[row, 1] += more * (2.0 * before + more)


@compiled
def _overload(state: State, placement: IntArray) -> float:
    over = 0.0
    for t in range(len(placement)):
        for row in range(3):
            left = state.free[row, placement[t]]
            if left < 0.0:
                over -= left / state.asked[row]
    return over


@inner
def _ahead(view: Compact, state: State) -> float:
    return state.ahead[0] if len(view.worth) > 0 else 0.0


@compiled
def _node_imbalance(view: Compact, state: State) -> float:
    imbalance = 0.0
    for row in range(2):
        mean = state.node_sums[row, 0] / view.node_count[row]
        variance = state.node_sums[row, 1] / view.node_count[row] - mean * mean
        imbalance += view.weights[row] * math.sqrt(max(variance, 0.0))
    return imbalance


@inner
def _affected(view: Compact, state: State, changed: IntArray, count: int) -> int:
    flows = 0
    for i in range(count):
        t = changed[i]
        for k in range(view.flows_first[t], view.flows_first[t + 1]):
            f = view.flows_of[k]
            if not state.is_affected[f]:
                state.is_affected[f] = True
                state.affected[flows] = f
                flows += 1
    for i in range(flows):
        state.is_affected[state.affected[i]] = False
    return flows


@compiled
def _carry(view: Compact, state: State, q: int, rate: float, low: float) -> None:
    if q < 0:
        return
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r, times = view.path_resource[i], view.path_times[i]
        state.spare[r] -= rate * times
        state.reserve[r] -= low * times
        more = rate * view.link_inverse[r]
        before = state.link_use[r]
        state.link_use[r] = before + more
        state.link_sums[0] += more
        state.link_sums[1] += more * (2.0 * before + more)


@inner
def _route(view: Compact, state: State, placement: IntArray, flows: int) -> None:
    """Chooses ``trial_path`` and ``guess`` for the first ``flows`` of ``affected``, one after the other, and carries
    them."""
    for i in range(flows):
        f = state.affected[i]
        src, dst = view.flow_src[f], view.flow_dst[f]
        a = placement[src] if src >= 0 else -1 - src
        b = placement[dst] if dst >= 0 else -1 - dst
        pair = a * view.fits.shape[1] + b
        first, last = view.pair_first[pair], view.pair_first[pair + 1]
        best, best_value, best_guess = -1, -math.inf, 0.0
        for q in range(first, last):
            guess, value = _prospect(view, state, f, q)
            if value > best_value:
                best, best_value, best_guess = q, value, guess
        state.trial_path[f] = best
        state.guess[f] = best_guess
        _carry(view, state, best, best_guess, view.low[f])


@compiled
def _prospect(view: Compact, state: State, f: int, q: int) -> tuple[float, float]:
    """(rate, value) that flow f may expect on path q, given what the others have."""
    low, high = view.low[f], view.high[f]
    sure = room = math.inf
    total, squares = state.link_sums[0], state.link_sums[1]
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r, times = view.path_resource[i], view.path_times[i]
        sure = min(sure, state.reserve[r] / times)
        room = min(room, state.spare[r] / times)
    guess = min(max(room, low), high)
    value = min(room, high) - low
    if high > low:
        value /= high - low
    elif room >= high:
        value = 1.0
    for i in range(view.path_first[q], view.path_first[q + 1]):
        r = view.path_resource[i]
        more = guess * view.link_inverse[r]
        total += more
        squares += more * (2.0 * state.link_use[r] + more)
    mean = total / view.link_count
    spread = math.sqrt(max(squares / view.link_count - mean * mean, 0.0))
    value = max(value, -10.0) / len(view.low) - view.weights[2] * spread
    if len(view.worth) > 0:
        for i in range(view.path_first[q], view.path_first[q + 1]):
            left = state.spare[view.path_resource[i]]
            value += 2.0 * (link_worth(view, left - guess * view.path_times[i]) - link_worth(view, left))
    if sure < low:
        value += 100.0 * max((sure - low) / max(low, 1e-300), -10.0) - 100.0
    return guess, value


@compiled
def _score(
    view: Compact,
    work: FillWork,
    state: State,
    overload: float,
    path: IntArray,
    rates: FloatArray,
    thorough: bool,
) -> float:
    balance = 0.5 - 0.5 * _node_imbalance(view, state) - OVERLOAD_COST * overload + _ahead(view, state)
    missing = 0
    for f in range(len(path)):
        if path[f] < 0:
            missing += 1
    if missing > 0:
        state.fits[1] = False
        return balance - NO_WAY * missing
    shortage, value = fill(view, work, path, rates)
    state.fits[1] = shortage == 0.0 and overload == 0.0
    if shortage > 0.0:
        return balance + 0.5 * UNFIT_SATISFACTION - SHORTAGE_COST * shortage
    if thorough and overload == 0.0:
        value = exchange(view, work, path, rates)
    if len(view.worth) > 0:
        balance += links_change(view, work)
    return balance + 0.5 * value
