"""From a state that compiled code left behind to a solver's answer."""

from __future__ import annotations

import numpy as np

from ces_core.bandwidth import allocation_of
from ces_core.diagnosis import SearchTrace
from ces_core.kernels.compact import Compact
from ces_core.kernels.refuse import refusals
from ces_core.kernels.state import State
from ces_core.limit import composite_limit
from ces_core.objective import evaluate
from ces_core.plan import REFUSALS, Considered, Plan, Result
from ces_core.problem import Problem

BESIDE = np.array([REFUSALS.index(code) for code in ("", "cpu", "memory", "gpu", "bandwidth")], dtype=np.int8)


def planned(solver: str, problem: Problem, view: Compact, state: State) -> Result:
    """The answer of ``solver`` where ``state`` holds a plan that fits."""
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


def _considered(problem: Problem, view: Compact, state: State) -> Considered:
    """Why each node was not taken: what keeps a task from it alone, else what the others have left of it."""
    alone = SearchTrace.of(problem).considered
    beside = np.zeros(view.fits.shape, dtype=np.int8)
    refusals(view, state, beside)
    codes = alone.codes.copy()
    here = codes[:, view.nodes]
    codes[:, view.nodes] = np.where(here == 0, BESIDE[beside], here)
    codes.setflags(write=False)
    return Considered(alone.tasks, alone.nodes, codes)
