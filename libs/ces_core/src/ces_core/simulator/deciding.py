"""One decision: timed, and judged by the independent checker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ces_core.checker import Violation, check
from ces_core.instance import write_instance
from ces_core.plan import Result
from ces_core.problem import Problem
from ces_core.solvers import Solver


class BrokenPlanError(RuntimeError):
    """A solver gave a plan that breaks a rule. ``instance`` and ``answer`` are what it was asked and what it said."""

    def __init__(self, solver: str, instance: Mapping[str, Any], answer: Mapping[str, Any], broken: list[Violation]):
        super().__init__(f"solver {solver} broke {len(broken)} rules, first: {broken[0]}")
        self.instance, self.answer = instance, answer
        self._parts = solver, instance, answer, broken

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

    Raises BrokenPlanError.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    result = solver.solve(problem, seed=seed, time_limit_s=time_limit_s)
    decision = Decision(result, time.perf_counter() - wall, time.process_time() - cpu)
    asked, answer = instance or write_instance(problem), result.to_dict()
    if broken := check(asked, answer, basis=problem.basis, paths=problem.paths):
        raise BrokenPlanError(solver.name, asked, answer, broken)
    return decision
