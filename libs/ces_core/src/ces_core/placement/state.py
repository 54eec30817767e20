"""State of a placement: where tasks are, what nodes and links have left and how evenly they are used.

A state may be infeasible: residual capacity is then negative.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled, inner
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.view import ProblemView
from ces_core.placement.worth import is_valued, left_worth


class State(NamedTuple):
    """T tasks on C candidates, F flows over R resources."""

    node_of: IntArray  # (T,)
    path: IntArray  # (F,) -1: there is none
    rates: FloatArray  # (F,)
    score: FloatArray  # (1,)
    fits: BoolArray  # (2,) whether the state is feasible; whether the latest trial was
    free: FloatArray  # (3, C) residual capacity, negative where tasks do not fit
    use: FloatArray  # (2, C)
    node_sums: FloatArray  # (2, 2) of CPU and memory: sum of utilisations, sum of squares
    ahead: FloatArray  # (1,) change in the nodes' value to later jobs; unused without worth
    asked: FloatArray  # (3,) total demand of all tasks
    spare: FloatArray  # (R,) residual capacity beside all rates
    reserve: FloatArray  # (R,) residual capacity beside all minimums
    link_use: FloatArray  # (R,)
    link_sums: FloatArray  # (2,)
    # Result of the latest trial.
    trial_path: IntArray  # (F,)
    trial_rates: FloatArray  # (F,)
    guess: FloatArray  # (F,) rates while paths are chosen
    affected: IntArray  # (F,) flows that the trial reroutes
    is_affected: BoolArray  # (F,)


@compiled
def new_state(view: ProblemView) -> State:
    """An empty state; :func:`ces_core.placement.trial.install` fills it."""
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
        spare=view.residual.copy(),
        reserve=view.residual.copy(),
        link_use=view.link_use.copy(),
        link_sums=np.array([view.link_sum, view.link_squares]),
        trial_path=np.full(flows, -1, dtype=np.int64),
        trial_rates=np.zeros(flows),
        guess=np.zeros(flows),
        affected=np.zeros(flows, dtype=np.int64),
        is_affected=np.zeros(flows, dtype=np.bool_),
    )


@inner
def recompute(view: ProblemView, state: State, placement: IntArray) -> None:
    """Recomputes everything derived from placement, paths and rates, which discards accumulated rounding errors."""
    empty_nodes(view, state)
    if is_valued(view):
        state.ahead[0] = 0.0
    for t in range(len(placement)):
        state.node_of[t] = placement[t]
        put(view, state, t, placement[t], 1.0)
    for f in range(len(view.low)):
        clear_path(view, state, state.path[f])
    state.link_sums[0], state.link_sums[1] = view.link_sum, view.link_squares
    for f in range(len(view.low)):
        carry(view, state, state.path[f], state.rates[f], view.low[f])


@inner
def empty_nodes(view: ProblemView, state: State) -> None:
    """Resets the nodes to their state before the job."""
    state.free[:] = view.free
    state.use[:] = view.use
    for row in range(2):
        state.node_sums[row, 0] = view.node_sum[row]
        state.node_sums[row, 1] = view.node_squares[row]


@inner
def empty_links(view: ProblemView, state: State) -> None:
    """Resets all links and media to their state before the job, except for ``link_sums``."""
    state.spare[:] = view.residual
    state.reserve[:] = view.residual
    state.link_use[:] = view.link_use


@inner
def clear_path(view: ProblemView, state: State, q: int) -> None:
    """Resets the resources of path ``q`` to their state before the job."""
    if q >= 0:
        for i in range(view.path_first[q], view.path_first[q + 1]):
            r = view.path_resource[i]
            state.spare[r] = state.reserve[r] = view.residual[r]
            state.link_use[r] = view.link_use[r]


@inner
def put(view: ProblemView, state: State, task: int, node: int, sign: float) -> None:
    """Adds a task to a node (``sign`` 1) or removes it (-1)."""
    valued = is_valued(view)
    if valued:
        state.ahead[0] -= left_worth(view, node, state.free[0, node], state.free[1, node], state.free[2, node])
    for row in range(3):
        state.free[row, node] -= sign * view.demand[task, row]
    if valued:
        state.ahead[0] += left_worth(view, node, state.free[0, node], state.free[1, node], state.free[2, node])
    for row in range(2):
        more = sign * view.demand[task, row] * view.inverse[row, node]
        before = state.use[row, node]
        state.use[row, node] = before + more
        state.node_sums[row, 0] += more
        state.node_sums[row, 1] += more * (2.0 * before + more)


@compiled
def carry(view: ProblemView, state: State, q: int, rate: float, low: float) -> None:
    """Adds a rate and a minimum to the resources of path ``q``; negative values remove them."""
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


@compiled
def overload_of(state: State, placement: IntArray) -> float:
    """Demand that does not fit on its node, as a share of all demand, summed over resources."""
    over = 0.0
    for t in range(len(placement)):
        for row in range(3):
            left = state.free[row, placement[t]]
            if left < 0.0:
                over -= left / state.asked[row]
    return over


@inner
def worth_ahead(view: ProblemView, state: State) -> float:
    """Change in the value of nodes to later jobs; 0 where the view has none."""
    return state.ahead[0] if is_valued(view) else 0.0


@compiled
def node_imbalance(view: ProblemView, state: State) -> float:
    """Weighted standard deviation of CPU and memory utilisation."""
    imbalance = 0.0
    for row in range(2):
        mean = state.node_sums[row, 0] / view.node_count[row]
        variance = state.node_sums[row, 1] / view.node_count[row] - mean * mean
        imbalance += view.weights[row] * math.sqrt(max(variance, 0.0))
    return imbalance


@compiled
def link_spread(view: ProblemView, state: State) -> float:
    """Standard deviation of the links' utilisation."""
    mean = state.link_sums[0] / view.link_count
    return math.sqrt(max(state.link_sums[1] / view.link_count - mean * mean, 0.0))


@inner
def mark_affected(view: ProblemView, state: State, changed: IntArray, count: int) -> int:
    """Lists the flows of the changed tasks in ``state.affected``; returns their number."""
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
