"""A solver that may say that waiting is better: a place now can cost a job bandwidth for as long as it runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from ces_core.plan import Result
from ces_core.problem import Problem
from ces_core.reason import Reason
from ces_core.solvers.base import Solver

FIRST = 0.7
"""The share of a time limit in which a place is looked for; in the rest, what the job could have alone."""


@dataclass(frozen=True)
class Patient:
    """As ``inner``, but declines a place that gives up more than ``forgone`` of the bandwidth satisfaction that the job
    would have on the cluster with nothing in use. Where nothing is in use no place is declined, so a job that waits
    for others to end does not wait for ever."""

    name: str
    summary: str
    inner: Solver
    forgone: float

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        started = time.perf_counter()
        now = self.inner.solve(problem, seed=seed, time_limit_s=None if time_limit_s is None else FIRST * time_limit_s)
        cluster = problem.cluster
        used = bool(cluster.node_used.any() or cluster.link_used.any())
        if not used or now.metrics is None or now.metrics.bandwidth_satisfaction >= 1 - self.forgone:
            return now
        empty = replace(problem, cluster=cluster.with_used(0 * cluster.node_used, 0 * cluster.link_used))
        left = None if time_limit_s is None else max(time_limit_s - (time.perf_counter() - started), 0.0)
        alone = self.inner.solve(empty, seed=seed, time_limit_s=left)
        found = now.metrics.bandwidth_satisfaction
        wanted = alone.metrics.bandwidth_satisfaction - self.forgone if alone.metrics is not None else 0.0
        if found >= wanted:
            return now
        reason = Reason("poor-bandwidth", proven=False, needed=wanted, available=found)
        return Result(now.solver, now.considered, reason=reason)
