"""Conversion of a search state into a solver's result, with the reasons why its tasks are not on other nodes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ces_core.bandwidth.bounds import composite_limit
from ces_core.bandwidth.composite import allocation_of
from ces_core.compiled.jit import compiled, inner
from ces_core.model.objective import evaluate
from ces_core.model.plan import REFUSALS, Considered, Plan, Result
from ces_core.model.problem import Problem
from ces_core.placement.state import State, carry, empty_links, recompute
from ces_core.placement.view import ProblemView
from ces_core.search.diagnosis import SearchTrace

BESIDE = np.array([REFUSALS.index(code) for code in ("", "cpu", "memory", "gpu", "bandwidth")], dtype=np.int8)


def planned(solver: str, problem: Problem, view: ProblemView, state: State) -> Result:
    """The result of ``solver`` for a feasible ``state``."""
    assignment = view.nodes[state.node_of].tolist()
    allocation = allocation_of(problem, view, state)
    metrics = evaluate(problem, assignment, allocation.paths, allocation.bandwidth)
    limit = composite_limit(problem, assignment)
    return Result(
        solver=solver,
        considered=_considered(problem, view, state),
        plan=Plan.of(problem, assignment, allocation.paths, allocation.bandwidth),
        metrics=metrics,
        bound=max(limit, metrics.composite),
    )


def _considered(problem: Problem, view: ProblemView, state: State) -> Considered:
    """Why each node was not chosen: the task does not fit there alone, or not beside the other tasks."""
    alone = SearchTrace.of(problem).considered
    beside = np.zeros(view.fits.shape, dtype=np.int8)
    refusals(view, state, beside)
    codes = alone.codes.copy()
    here = codes[:, view.nodes]
    codes[:, view.nodes] = np.where(here == 0, BESIDE[beside], here)
    codes.setflags(write=False)
    return Considered(alone.tasks, alone.nodes, codes)


@compiled
def refusals(view: ProblemView, state: State, codes: NDArray[np.int8]) -> None:
    """Sets ``codes`` (T, C) to why a task could not move to a candidate while the others stay: 1, 2, 3 for too little
    CPU, memory or GPU, 4 for a flow whose minimum does not fit beside the others', 0 where it could move."""
    # Recomputed first: rounding errors of a long search would make a full link look overloaded.
    empty_links(view, state)
    recompute(view, state, state.node_of)
    for t in range(len(state.node_of)):
        for k in range(view.flows_first[t], view.flows_first[t + 1]):
            f = view.flows_of[k]
            carry(view, state, state.path[f], -state.rates[f], -view.low[f])
        for n in range(view.fits.shape[1]):
            codes[t, n] = 0
            if n == state.node_of[t]:
                continue
            for row in range(2, -1, -1):
                if view.demand[t, row] > state.free[row, n]:
                    codes[t, n] = row + 1
            if codes[t, n] == 0 and not _reaches(view, state, t, n):
                codes[t, n] = 4
        for k in range(view.flows_first[t], view.flows_first[t + 1]):
            f = view.flows_of[k]
            carry(view, state, state.path[f], state.rates[f], view.low[f])


@inner
def _reaches(view: ProblemView, state: State, task: int, node: int) -> bool:
    """Whether each flow of the task, with the task on ``node``, has a path that can carry its minimum."""
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        src, dst = view.flow_src[f], view.flow_dst[f]
        a = node if src == task else (state.node_of[src] if src >= 0 else -1 - src)
        b = node if dst == task else (state.node_of[dst] if dst >= 0 else -1 - dst)
        pair = a * view.fits.shape[1] + b
        found = False
        for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
            residual = math.inf
            for i in range(view.path_first[q], view.path_first[q + 1]):
                residual = min(residual, state.reserve[view.path_resource[i]] / view.path_times[i])
            if residual >= view.low[f]:
                found = True
                break
        if not found:
            return False
    return True
