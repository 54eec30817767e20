"""A run of a cluster: jobs come and go, decided by a quick search that always looks at as much."""

from __future__ import annotations

from dataclasses import dataclass

from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.placement.candidates import candidates
from ces_core.placement.path_choice import better_paths
from ces_core.placement.value import Value
from ces_core.placement.view import problem_view
from ces_core.search.annealing import keep
from ces_core.search.answer import planned
from ces_core.search.diagnosis import SearchTrace, obstacle
from ces_core.search.solver import OPTIMISTIC, Bench
from ces_core.search.workspace import (
    improve_neighbourhoods,
    reset_tree,
    return_to_best,
    run_annealing,
    search_tree,
    worst_fit_start,
)
from ces_sim.arrivals import poisson
from ces_sim.cluster import simulate
from ces_sim.offered import drawn_cluster, paced
from ces_sim.rounds import derived_seed

DIVES, BREADTH = 4, 12
"""First plans, and nodes tried for each task of one. (Constants of its own: those of ``search`` change with it.)"""
COOLING, HOT, COLD = 100, 0.1, 1e-3
"""Steps of the annealing, and its temperatures."""
NEARBY, NEIGHBOURHOOD, LIMIT = 200, 4, 200
"""Partial placements in neighbourhoods, tasks of one, and partial placements for one."""
NODES, TASKS, MEAN_S = 20, (3, 4, 5, 6, 7, 8), 600.0
"""Nodes of a cluster, sizes of jobs, and how long jobs run and wait: as in the online benchmark."""


@dataclass(frozen=True)
class Hasty:
    """The steps of ``search`` up to its trees, without a clock: the same answer every time."""

    value: Value | None
    name: str = "hasty"
    summary: str = "what values are learned with"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        hindrance = obstacle(problem)
        if hindrance is None:
            view = problem_view(problem, candidates(problem, seed))
            bench = Bench.of(view if self.value is None else self.value.on(problem, view), seed)
            _search(bench)
            if bench.state.fits[0]:
                return planned(self.name, problem, bench.view, bench.state)
            hindrance = Reason("packing", proven=False)
        return Result(self.name, SearchTrace.of(problem).considered, reason=hindrance)


def _search(bench: Bench) -> None:
    workspace, tasks = bench.workspace, len(bench.view.fits)
    worst_fit_start(workspace)
    reset_tree(workspace)
    for _ in range(DIVES):
        if search_tree(workspace, OPTIMISTIC, tasks, tasks, BREADTH) < tasks:
            break
    keep(bench.state, bench.walk)
    run_annealing(workspace, COOLING, HOT, COLD, 0, COOLING)
    return_to_best(workspace)
    improve_neighbourhoods(workspace, OPTIMISTIC, min(NEIGHBOURHOOD, tasks), LIMIT, BREADTH, NEARBY, NEARBY)
    better_paths(bench.view, bench.work, bench.state)


@dataclass(frozen=True)
class Scene:
    """A cluster and the jobs that come; the same for every value that plays it."""

    regime: str
    load: float
    jobs: int
    seed: int

    def play(self, value: Value | None) -> dict[str, float]:
        """``accepted``: share of the jobs; satisfaction and load imbalance: means over time."""
        cluster = drawn_cluster(self.regime, derived_seed(self.seed, 0), nodes=NODES)
        drawn = poisson(self.jobs, 1.0, MEAN_S, TASKS, derived_seed(self.seed, 0, 1), regime=self.regime)
        jobs = paced(drawn, cluster, self.load)
        told = simulate(cluster, jobs, Hasty(value), patience_s=MEAN_S).figures()
        return {name: told[name] or 0.0 for name in ("accepted", "bandwidth_satisfaction", "load_imbalance")}
