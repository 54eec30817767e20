"""Playing a value: jobs come and go on a drawn cluster, decided by a quick search that always looks at as much."""

from __future__ import annotations

from dataclasses import dataclass

from ces_core.bench.online import Question, paced, summary
from ces_core.candidates import candidates
from ces_core.diagnosis import SearchTrace, obstacle
from ces_core.kernels.anneal import keep
from ces_core.kernels.compact import compact
from ces_core.kernels.desk import begin, cool, grow, mend, return_to_best, spread_out
from ces_core.kernels.improve import better_paths
from ces_core.plan import Result
from ces_core.problem import Problem
from ces_core.reason import Reason
from ces_core.simulator.online import simulate
from ces_core.simulator.workload import TimedJob
from ces_core.solvers.finishing import planned
from ces_core.solvers.search import HOPEFUL, Bench
from ces_core.value.value import Value

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
            view = compact(problem, candidates(problem, seed))
            bench = Bench.of(view if self.value is None else self.value.on(problem, view), seed)
            _search(bench)
            if bench.state.fits[0]:
                return planned(self.name, problem, bench.view, bench.state)
            hindrance = Reason("packing", proven=False)
        return Result(self.name, SearchTrace.of(problem).considered, reason=hindrance)


def _search(bench: Bench) -> None:
    desk, tasks = bench.desk, len(bench.view.fits)
    spread_out(desk)
    begin(desk)
    for _ in range(DIVES):
        if grow(desk, HOPEFUL, tasks, tasks, BREADTH) < tasks:
            break
    keep(bench.state, bench.walk)
    cool(desk, COOLING, HOT, COLD, 0, COOLING)
    return_to_best(desk)
    mend(desk, HOPEFUL, min(NEIGHBOURHOOD, tasks), LIMIT, BREADTH, NEARBY, NEARBY)
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
        question = Question(
            loads=(self.load,), regime=self.regime, nodes=NODES, topology="random", jobs=self.jobs, tasks=TASKS,
            duration_s=MEAN_S, patience_s=MEAN_S, policy="fcfs-backfill", repeats=1, seed=self.seed, solvers=(),
            time_limit_s=None,
        )  # fmt: skip
        cluster = question.cluster(0)
        jobs: list[TimedJob] = paced(question.workload(0), cluster, self.load)
        told = summary([simulate(cluster, jobs, Hasty(value), patience_s=MEAN_S)])
        names = ("accepted", "bandwidth_satisfaction", "load_imbalance")
        return {name: float(told[name]["mean"]) for name in names}
