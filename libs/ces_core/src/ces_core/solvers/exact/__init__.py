"""``exact``: the best plan with a proof, or the best found in time with an upper limit on what any plan reaches.

The solver ``search`` gives the first plan; the tree (:mod:`ces_core.solvers.exact.tree`) proves that there is none
better, or finds it. Where no plan exists, that is proven too. Where there are too many equally short paths to look at
all of them, or the instance is too large for the tree, nothing is claimed from the tree: the bound is then the one that
comes with ``search``, which holds for any paths.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ces_core.diagnosis import SearchTrace, explain, obstacle
from ces_core.linear import best_value
from ces_core.objective import evaluate
from ces_core.paths.table import MOST_NODES
from ces_core.plan import Metrics, Plan, Result
from ces_core.problem import SLACK, Problem
from ces_core.reason import Reason
from ces_core.solvers import greedy
from ces_core.solvers.exact.tree import Found, Outcome, prove
from ces_core.solvers.search import SEARCH
from ces_core.topology import IntArray

TIME_LIMIT_S = 60.0
"""The solver's own limit where the caller sets none."""
START = 0.25
"""Part of a short time limit that the first plan may take."""
REASON_S = 5.0
"""So long, at most, is spent on why an infeasible job has no place, per variation that is looked at."""
LARGEST = 5_000_000
"""Pairs of candidate nodes times flows that the tree is tried on, at most: beyond, its tables outgrow memory."""


class Exact:
    """See the module."""

    name = "exact"
    summary = "proven optimum, or best plan and bound within 60 s"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        limit = TIME_LIMIT_S if time_limit_s is None else time_limit_s
        deadline = time.perf_counter() + limit
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


def _nodes(problem: Problem) -> IntArray:
    """The nodes that could hold some task or are the end of a flow: the candidates of the tree."""
    cluster = problem.cluster
    free = cluster.node_free + SLACK * cluster.node_capacity
    fits = problem.allowed & (problem.demand[:, :, None] <= free[None]).all(axis=1)
    ends = -1 - np.concatenate([problem.flow_src, problem.flow_dst])
    return np.union1d(np.flatnonzero(fits.any(axis=0)), ends[ends >= 0]).astype(np.int64)


def _within_reach(problem: Problem) -> bool:
    """Whether the tree's tables fit into memory."""
    count = len(_nodes(problem))
    return count <= MOST_NODES and count * count * max(1, len(problem.flows)) <= LARGEST


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
