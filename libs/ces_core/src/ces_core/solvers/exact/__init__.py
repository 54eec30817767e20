"""``exact``: the best plan with a proof, or the best found in time with an upper limit on what any plan reaches.

Another solver gives the first plan; the tree (:mod:`ces_core.solvers.exact.tree`) proves that there is none better or
finds it. Where no plan exists, that is proven too. The proof is about the paths that the path table holds.
"""

from __future__ import annotations

import time
from dataclasses import replace

from ces_core.diagnosis import SearchTrace, explain, obstacle
from ces_core.linear import best_value
from ces_core.objective import evaluate
from ces_core.plan import Metrics, Plan, Result
from ces_core.problem import Problem
from ces_core.reason import Reason
from ces_core.solvers.exact.tree import Found, Outcome, prove
from ces_core.solvers.greedy import GREEDY, search

TIME_LIMIT_S = 60.0
"""The solver's own limit where the caller sets none."""
REASON_S = 5.0
"""So long, at most, is spent on why an infeasible job has no place, per variation that is looked at."""


class Exact:
    """See the module."""

    name = "exact"
    summary = f"proven optimum, or the best plan within the time limit ({TIME_LIMIT_S:g} s) with a proven bound"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        limit = TIME_LIMIT_S if time_limit_s is None else time_limit_s
        deadline = time.perf_counter() + limit
        considered = SearchTrace.of(problem).considered
        hindrance = obstacle(problem)
        if hindrance is not None:
            return Result(self.name, considered, reason=hindrance)
        start = GREEDY.solve(problem, seed=seed, time_limit_s=limit)
        known = None if start.metrics is None else 2.0 * (1.0 - start.metrics.composite)
        outcome = prove(problem, known, deadline)
        plan, metrics = start.plan, start.metrics
        if outcome.found is not None:
            better = _finished(problem, outcome.found)
            if metrics is None or better[1].composite > metrics.composite:
                plan, metrics = better
        if metrics is None:
            reason = _reason(problem, outcome, seed, deadline)
            bound = None if outcome.complete else min(1.0, 1.0 - 0.5 * outcome.floor)
            return Result(self.name, considered, reason=reason, bound=bound)
        bound = max(metrics.composite, min(1.0, 1.0 - 0.5 * outcome.floor))
        return Result(self.name, considered, plan, metrics, bound=bound)


EXACT = Exact()


def _finished(problem: Problem, found: Found) -> tuple[Plan, Metrics]:
    """The plan with rates from a corner of what is possible, where they are as good: they are rounder numbers."""
    metrics = evaluate(problem, found.assignment, found.paths, found.bandwidth)
    rates = best_value(problem, [(path,) for path in found.paths]) if problem.flows else None
    if rates is not None:
        bandwidth = tuple(rates.bandwidth.tolist())
        rounder = evaluate(problem, found.assignment, found.paths, bandwidth)
        if rounder.composite >= metrics.composite - 1e-12:
            return Plan.of(problem, found.assignment, found.paths, bandwidth), rounder
    return Plan.of(problem, found.assignment, found.paths, found.bandwidth), metrics


def _reason(problem: Problem, outcome: Outcome, seed: int, deadline: float) -> Reason:
    """Why there is no plan; the names are what a plain search stumbled over, what is proven comes from the tree."""

    def examined(other: Problem) -> tuple[object | None, SearchTrace]:
        found, trace = search(other, seed, deadline)
        if found is not None:
            return found, trace
        hindrance = obstacle(other)
        if hindrance is not None:
            return None, replace(trace, complete=True)
        again = prove(other, None, min(deadline, time.perf_counter() + REASON_S), first=True)
        return again.found, replace(trace, complete=again.complete and again.found is None)

    _, trace = search(problem, seed, deadline)
    return explain(problem, replace(trace, complete=outcome.complete), examined)
