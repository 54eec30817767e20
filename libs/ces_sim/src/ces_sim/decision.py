"""One decision: timed, and judged by the independent checker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ces_core.checker import check
from ces_core.model.instance import write_instance
from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.solver import Solver


class BadDecisionError(RuntimeError):
    """A solver failed, or its plan breaks a rule. ``instance`` is what it was asked, ``answer`` what it said, if so."""

    def __init__(self, solver: str, problem: str, instance: Mapping[str, Any], answer: Mapping[str, Any] | None):
        super().__init__(f"solver {solver} {problem}")
        self.instance, self.answer = instance, answer
        self._parts = solver, problem, instance, answer

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts  # it may come from another process


@dataclass(frozen=True, eq=False)
class Decision:
    """``wall_s`` is what a caller waits, ``cpu_s`` what the process computes meanwhile, all threads together."""

    result: Result
    wall_s: float
    cpu_s: float


def decide(
    solver: Solver,
    problem: Problem,
    instance: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    time_limit_s: float | None = None,
) -> Decision:
    """Ask, time and check. ``instance`` is what the problem was read from; it is written out where left out.

    Raises BadDecisionError.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        result = solver.solve(problem, seed=seed, time_limit_s=time_limit_s)
    except Exception as error:
        told = f"failed: {type(error).__name__}: {error}"
        raise BadDecisionError(solver.name, told, instance or write_instance(problem), None) from error
    decision = Decision(result, time.perf_counter() - wall, time.process_time() - cpu)
    answer = result.to_dict()
    asked = instance or (write_instance(problem) if result.feasible else {})  # a refusal is checked by itself alone
    if broken := check(asked, answer, basis=problem.basis, paths=problem.paths):
        told = f"broke {len(broken)} rules, first: {broken[0]}"
        raise BadDecisionError(solver.name, told, asked or write_instance(problem), answer)
    return decision
