"""``exact``: the best plan with a proof, or the best found in time with an upper bound on every plan.

The solver ``search`` gives the first plan; the tree search (:mod:`ces_core.exact.best_first`) improves it or proves
that it is optimal, or that no plan exists. Where there are too many equally short paths to examine, or the instance is
too large for the tree, the bound is that of ``search``, which holds for any paths.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ces_core.bandwidth.linear import best_value
from ces_core.exact.best_first import Found, Outcome, prove
from ces_core.exact.goals import solve_with_goals
from ces_core.model.objective import evaluate
from ces_core.model.plan import Metrics, Plan, Result
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.network.path_table import MOST_NODES
from ces_core.search import greedy
from ces_core.search.diagnosis import SearchTrace, explain, obstacle
from ces_core.search.goals.domains import without_goals
from ces_core.search.solver import SEARCH

TIME_LIMIT_S = 60.0
"""Default time limit."""
START = 0.25
"""Share of a short time limit available to the first plan."""
REASON_S = 5.0
"""Maximum time per variation examined to explain an infeasible job."""
LARGEST = 5_000_000
"""Maximum number of candidate pairs times flows; beyond it the tables of the tree outgrow memory."""


class Exact:
    """Solver of this module."""

    name = "exact"
    summary = "proven optimum, or best plan and bound within 60 s; knows deadlines, energy and reliability"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        limit = TIME_LIMIT_S if time_limit_s is None else time_limit_s
        deadline = time.perf_counter() + limit
        if problem.has_goals:
            answer = solve_with_goals(self.name, problem, deadline)
            if answer.reason is not None and answer.reason.code == "placed-together":
                plain = self.solve(without_goals(problem), seed=seed, time_limit_s=REASON_S)
                return answer if plain.reason is None else replace(answer, reason=plain.reason)
            return answer
        considered = SearchTrace.of(problem).considered
        hindrance = obstacle(problem)
        if hindrance is not None:
            return Result(self.name, considered, reason=hindrance)
        start = SEARCH.solve(problem, seed=seed, time_limit_s=None if limit >= 1.0 else limit * START)
        if not _within_reach(problem):
            return replace(start, solver=self.name)
        known = None if start.metrics is None else 2.0 * (1.0 - start.metrics.composite)
        outcome = prove(problem, known, deadline)
        plan, metrics = start.plan, start.metrics
        if outcome.found is not None:
            better = _finished(problem, outcome.found)
            if metrics is None or better[1].composite > metrics.composite:
                plan, metrics = better
        if metrics is None:
            return Result(self.name, considered, reason=_reason(problem, outcome, seed, deadline))
        bound = 1.0 if start.bound is None else start.bound
        if outcome.all_paths:
            bound = min(bound, 1.0 - 0.5 * outcome.floor)
        return Result(self.name, considered, plan, metrics, bound=max(bound, metrics.composite))


EXACT = Exact()


def _within_reach(problem: Problem) -> bool:
    """Whether the tables of the tree, over nodes that fit some task or are the end of a flow, fit into memory."""
    ends = -1 - np.concatenate([problem.flow_src, problem.flow_dst])
    count = len(np.union1d(np.flatnonzero(problem.homes.any(axis=0)), ends[ends >= 0]))
    return count <= MOST_NODES and count * count * max(1, len(problem.flows)) <= LARGEST


def _finished(problem: Problem, found: Found) -> tuple[Plan, Metrics]:
    """The plan with rates from a vertex of the feasible set if they are as good, because they are rounder numbers."""
    metrics = evaluate(problem, found.assignment, found.paths, found.bandwidth)
    rates = best_value(problem, [(path,) for path in found.paths]) if problem.flows else None
    if rates is not None:
        bandwidth = tuple(rates.bandwidth.tolist())
        rounder = evaluate(problem, found.assignment, found.paths, bandwidth)
        if rounder.composite >= metrics.composite - 1e-12:
            return Plan.of(problem, found.assignment, found.paths, bandwidth), rounder
    return Plan.of(problem, found.assignment, found.paths, found.bandwidth), metrics


def _reason(problem: Problem, outcome: Outcome, seed: int, deadline: float) -> Reason:
    """Why there is no plan: names come from a plain search, proofs from the tree."""

    def examined(other: Problem) -> tuple[object | None, SearchTrace]:
        found, trace = greedy.search(other, seed, deadline)
        if found is not None:
            return found, trace
        if obstacle(other) is not None:
            return None, replace(trace, complete=True)
        again = prove(other, None, min(deadline, time.perf_counter() + REASON_S), first=True)
        return again.found, replace(trace, complete=_settled(again))

    _, trace = greedy.search(problem, seed, deadline)
    return explain(problem, replace(trace, complete=_settled(outcome)), examined)


def _settled(outcome: Outcome) -> bool:
    """Whether it is proven that there is no plan."""
    return outcome.complete and outcome.found is None and outcome.all_paths
