"""A solver from a placement rule and a bandwidth rule, and the validation that their settings share. Neither rule
retries: what does not fit at once is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ces_core.baselines.rates import Shortfall, Step, fill
from ces_core.baselines.sequential import Placement
from ces_core.model.objective import evaluate
from ces_core.model.plan import Plan, Result
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.search.diagnosis import obstacle
from ces_core.solver import refuse_goals

Placer = Callable[[Problem, np.random.Generator], Placement]


@dataclass(frozen=True)
class Baseline:
    """A baseline solver.

    A refusal is called proven only if it shows without a search that no solver could place the job. Decisions take
    milliseconds, a tenth of a second among thousands of nodes, so a time limit changes nothing.
    """

    name: str
    summary: str
    place: Placer
    serve: Step = fill

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        refuse_goals(self.name, problem)
        rng = np.random.default_rng(seed)
        placed = self.place(problem, rng)
        if placed.assignment is None:
            task = None if placed.stuck is None else problem.tasks[placed.stuck].name
            reason = obstacle(problem) or Reason("packing", proven=False, task=task)
            return Result(self.name, placed.considered, reason=reason)
        served = self.serve(problem, placed.assignment, rng)
        if isinstance(served, Shortfall):
            reason = obstacle(problem) or _too_little(problem, served)
            return Result(self.name, placed.considered, reason=reason)
        plan = Plan.of(problem, placed.assignment, served.paths, served.bandwidth)
        metrics = evaluate(problem, placed.assignment, served.paths, served.bandwidth)
        return Result(self.name, placed.considered, plan, metrics)


def _too_little(problem: Problem, shortfall: Shortfall) -> Reason:
    if shortfall.flow is None:
        return Reason("bandwidth-together", proven=False, resource="bandwidth")
    flow = problem.flows[shortfall.flow]
    return Reason(
        "bandwidth-together",
        proven=False,
        resource="bandwidth",
        needed=float(flow.min),
        available=min(shortfall.found, float(flow.min)),
        flow=(flow.src, flow.dst),
    )


def within(settings: Any, low: float, high: float, *fields: str) -> None:
    """Raise ValueError, naming the field, if one of the fields is not a number within ``low..high``."""
    for field in fields:
        value = getattr(settings, field)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"{type(settings).__name__}.{field} must be within {low:g}..{high:g}, not {value!r}")


def weights(settings: Any, *fields: str) -> None:
    """Raise ValueError, naming the field, if one of the fields is not a weight, or all of them are zero."""
    for field in fields:
        value = getattr(settings, field)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ValueError(f"{type(settings).__name__}.{field} must be a number from 0 up, not {value!r}")
    if not any(getattr(settings, field) for field in fields):
        raise ValueError(f"{type(settings).__name__}: at least one of {', '.join(fields)} must be above 0")
