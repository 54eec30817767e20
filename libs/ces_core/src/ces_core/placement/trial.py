"""Trials: the score of a complete placement, and of moving a few tasks or one path.

A feasible plan scores its composite, plus the value of the capacity left behind where the view has one
(:mod:`ces_core.placement.worth`). A state may also be infeasible; its score is then reduced by the violation, so that a
search can pass through such states and is guided back to feasible ones.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from ces_core.compiled.jit import compiled, inner
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.fill import FillWork, exchange, fill
from ces_core.placement.state import (
    State,
    carry,
    clear_path,
    link_spread,
    mark_affected,
    node_imbalance,
    overload_of,
    put,
    recompute,
    worth_ahead,
)
from ces_core.placement.step import best_path
from ces_core.placement.view import ProblemView
from ces_core.placement.worth import links_change

NO_PATH_COST = 100.0
"""Penalty for a flow without a path."""
SHORTAGE_COST = 1.5
"""Penalty if none of the minimum bandwidth fits; a partial shortage costs in proportion."""
OVERLOAD_COST = 3.0
"""Penalty if no task fits on its node; a partial overload costs in proportion."""
ROUGH, THOROUGH = cast(bool, np.False_), cast(bool, np.True_)
"""Whether bandwidth is also exchanged between flows. (A plain False or True would be a different type to the
compiler.)"""
SETTLING = 0.02
"""Upper estimate of what coordinate ascent over rates adds to a score."""
UNFIT_SATISFACTION = 0.5
"""Bandwidth satisfaction assumed where minimums do not fit."""


@compiled
def install(view: ProblemView, work: FillWork, state: State, placement: IntArray) -> None:
    """Puts the tasks where ``placement`` (T,) says and chooses paths and rates from scratch."""
    flows = len(view.low)
    for f in range(flows):
        clear_path(view, state, state.path[f])
        state.path[f] = -1
        state.affected[f] = f
    recompute(view, state, placement)
    _route(view, state, placement, flows)
    for f in range(flows):
        state.path[f] = state.trial_path[f]
        carry(view, state, state.path[f], -state.guess[f], -view.low[f])
    overload = overload_of(state, placement)
    score = score_state(view, work, state, overload, state.path, state.rates, THOROUGH)
    recompute(view, state, placement)
    state.score[0] = score
    state.fits[0] = state.fits[1]


@compiled
def attempt(
    view: ProblemView,
    work: FillWork,
    state: State,
    placement: IntArray,
    changed: IntArray,
    count: int,
    worth: float,
    thorough: bool,
) -> float:
    """The score with the first ``count`` tasks of ``changed`` moved as in ``placement`` (T,); the state stays
    unchanged.

    Stops early and returns an upper estimate where nodes alone, or the rates guessed with the paths, show that the
    score cannot exceed ``worth``. Otherwise ``trial_path`` and ``trial_rates`` hold what :func:`accept` would apply.
    ``thorough``: bandwidth is also exchanged between flows.
    """
    for i in range(count):
        put(view, state, changed[i], state.node_of[changed[i]], -1.0)
    for i in range(count):
        put(view, state, changed[i], placement[changed[i]], 1.0)
    state.fits[1] = False
    overload = overload_of(state, placement)
    score = 1.0 - 0.5 * node_imbalance(view, state) - OVERLOAD_COST * overload + worth_ahead(view, state)
    if score > worth:
        flows = mark_affected(view, state, changed, count)
        for f in range(len(view.low)):
            state.trial_path[f] = state.path[f]
            state.guess[f] = state.rates[f]
        for i in range(flows):
            f = state.affected[i]
            carry(view, state, state.path[f], -state.rates[f], -view.low[f])
        _route(view, state, placement, flows)
        hoped, settled = outright(view, state, overload, flows)
        if settled:
            score = hoped
            state.trial_rates[:] = view.high
            state.fits[1] = overload == 0.0
        elif thorough or not state.fits[0] or hoped + SETTLING > worth:
            score = score_state(view, work, state, overload, state.trial_path, state.trial_rates, thorough)
        else:
            score = hoped
        for i in range(flows):
            f = state.affected[i]
            carry(view, state, state.trial_path[f], -state.guess[f], -view.low[f])
            carry(view, state, state.path[f], state.rates[f], view.low[f])
    for i in range(count):
        put(view, state, changed[i], placement[changed[i]], -1.0)
    for i in range(count):
        put(view, state, changed[i], state.node_of[changed[i]], 1.0)
    return score


@inner
def outright(view: ProblemView, state: State, overload: float, flows: int) -> tuple[float, bool]:
    """(score, settled) from the rates guessed while the paths of ``flows`` affected flows were chosen. Settled: every
    flow has its maximum and everything fits, so this is the score unless less bandwidth would balance better. (Rates
    with a range are guessed below their maximum where capacity is short; fixed rates are not.)"""
    count = len(view.low)
    if len(view.worth) > 0:
        return math.inf, False
    lost, residual = 0.0, True
    for f in range(count):
        span, q = view.high[f] - view.low[f], state.trial_path[f]
        if q < 0:
            return -math.inf, False
        if span > 0.0:
            lost += (view.high[f] - state.guess[f]) / span
            continue
        for i in range(view.path_first[q], view.path_first[q + 1]):
            residual = residual and state.spare[view.path_resource[i]] >= 0.0
    value = 1.0 - (lost / count if count else 0.0) - view.weights[2] * link_spread(view, state)
    score = 0.5 - 0.5 * node_imbalance(view, state) - OVERLOAD_COST * overload + 0.5 * value
    score += worth_ahead(view, state)
    known = state.fits[0] or flows == count
    return score, known and residual and lost <= 0.0


@compiled
def attempt_path(view: ProblemView, work: FillWork, state: State, flow: int, path: int) -> float:
    """The score with one flow on another path; the state stays unchanged."""
    for f in range(len(view.low)):
        state.trial_path[f] = state.path[f]
    state.trial_path[flow] = path
    overload = overload_of(state, state.node_of)
    return score_state(view, work, state, overload, state.trial_path, state.trial_rates, THOROUGH)


@compiled
def accept(view: ProblemView, state: State, placement: IntArray, score: float) -> None:
    """Applies the latest trial, which placed tasks as in ``placement`` and scored ``score``."""
    for f in range(len(view.low)):
        clear_path(view, state, state.path[f])
        state.path[f] = state.trial_path[f]
        state.rates[f] = state.trial_rates[f]
    recompute(view, state, placement)
    state.score[0] = score
    # Feasibility is judged on recomputed sums: incremental ones carry rounding errors of many trials.
    state.fits[0] = state.fits[1] and overload_of(state, placement) == 0.0


@inner
def _route(view: ProblemView, state: State, placement: IntArray, flows: int) -> None:
    """Chooses ``trial_path`` and ``guess`` for the first ``flows`` affected flows in turn, and adds their load."""
    for i in range(flows):
        f = state.affected[i]
        src, dst = view.flow_src[f], view.flow_dst[f]
        a = placement[src] if src >= 0 else -1 - src
        b = placement[dst] if dst >= 0 else -1 - dst
        best, guess = best_path(view, state, f, a, b, -math.inf)
        state.trial_path[f] = best
        state.guess[f] = guess
        carry(view, state, best, guess, view.low[f])


@compiled
def score_state(
    view: ProblemView, work: FillWork, state: State, overload: float, path: IntArray, rates: FloatArray, thorough: bool
) -> float:
    """The score of these paths with rates filled in; sets ``state.fits[1]``."""
    balance = 0.5 - 0.5 * node_imbalance(view, state) - OVERLOAD_COST * overload + worth_ahead(view, state)
    missing = 0
    for f in range(len(path)):
        if path[f] < 0:
            missing += 1
    if missing > 0:
        state.fits[1] = False
        return balance - NO_PATH_COST * missing
    shortage, value = fill(view, work, path, rates)
    state.fits[1] = shortage == 0.0 and overload == 0.0
    if shortage > 0.0:
        return balance + 0.5 * UNFIT_SATISFACTION - SHORTAGE_COST * shortage
    if thorough and overload == 0.0:
        value = exchange(view, work, path, rates)
    if len(view.worth) > 0:
        balance += links_change(view, work)
    return balance + 0.5 * value
