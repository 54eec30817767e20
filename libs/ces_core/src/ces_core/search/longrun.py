"""``search-longrun``: the search with lookahead to later jobs.

It maximises the composite with a learned weight of balance, plus a learned value of the capacity left behind
(:mod:`ces_core.placement.value`). A single plan mostly has a lower composite than that of ``search``, but more jobs can
be placed over time. Because more concurrent jobs fill the links, a job whose flows would do much worse than on an idle
cluster is told to wait: a poor placement costs bandwidth for as long as the job runs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.placement.value import shipped
from ces_core.search.solver import Search
from ces_core.solver import Solver

FIRST = 0.7
"""Share of the time limit spent on a placement; the rest is spent on the job's optimum alone on the cluster."""
FORGONE = 0.1
"""Bandwidth satisfaction a job may lose before it waits. Smaller values make jobs wait needlessly where links are
scarce; with 0.2 running jobs fare no better than with ``search``. See docs/benchmarks/longrun.md."""


@dataclass(frozen=True)
class Patient:
    """Wraps ``inner`` and declines placements that lose more than ``forgone`` of the bandwidth satisfaction the job
    would have on an idle cluster. On an idle cluster nothing is declined, so no job waits for ever."""

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
        left = None if time_limit_s is None else max(time_limit_s - (time.perf_counter() - started), 0.0)
        alone = self.inner.solve(problem.on_empty_cluster(), seed=seed, time_limit_s=left)
        found = now.metrics.bandwidth_satisfaction
        wanted = alone.metrics.bandwidth_satisfaction - self.forgone if alone.metrics is not None else 0.0
        if found >= wanted:
            return now
        reason = Reason("poor-bandwidth", proven=False, needed=wanted, available=found)
        return Result(now.solver, now.considered, reason=reason)


LOOKAHEAD = Search("search-longrun", "counts what is left for later jobs", value=shipped)
"""The same solver without waiting."""
SEARCH_LONGRUN = Patient(
    LOOKAHEAD.name,
    "search for the long run: counts what is left for later jobs, and waits where links are full",
    LOOKAHEAD,
    FORGONE,
)
