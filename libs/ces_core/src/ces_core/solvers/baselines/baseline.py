"""A placement rule and a bandwidth rule make a solver. Neither retries: what does not fit at once is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ces_core.diagnosis import obstacle
from ces_core.objective import evaluate
from ces_core.plan import Plan, Result
from ces_core.problem import Problem
from ces_core.reason import Reason
from ces_core.solvers.baselines.sequential import Placement
from ces_core.solvers.baselines.steps import Shortfall, Step, fill

Placer = Callable[[Problem, np.random.Generator], Placement]


@dataclass(frozen=True)
class Baseline:
    """One of the solvers that people compare with.

    A refusal is only called proven where it can be seen without searching that no solver could place the job. Decisions
    take milliseconds, a tenth of a second among thousands of nodes, so a time limit changes nothing.
    """

    name: str
    summary: str
    place: Placer
    serve: Step = fill

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
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
        paths, rates = served
        metrics = evaluate(problem, placed.assignment, paths, rates)
        return Result(self.name, placed.considered, Plan.of(problem, placed.assignment, paths, rates), metrics)


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
