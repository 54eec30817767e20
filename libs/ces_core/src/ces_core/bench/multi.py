"""The benchmark of queues: the same jobs arrive at the same clusters, once for each policy, placement and load."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ces_core.bench.multi_measures import MEASURES, measures
from ces_core.bench.spread import spread
from ces_core.generate import random_instance
from ces_core.instance import read_instance
from ces_core.multi.parameters import Parameters
from ces_core.problem import Cluster, Problem
from ces_core.simulator.online import simulate
from ces_core.simulator.policy import FirstComeFirstServed, Policy
from ces_core.simulator.queueing import RIVALS, Cycles
from ces_core.simulator.rounds import derived_seed
from ces_core.simulator.workload import TimedJob, from_trace, poisson
from ces_core.solvers import Solver, get_solver
from ces_core.solvers.base import Foreseeing, foreseeing
from ces_core.solvers.warm import warm_up

LEAST_ALLOCATED = "least-allocated"
"""The placement that every policy is run with as well."""
SPARING = "sparing room"
"""And at the highest load the others by the solver that CES-Multi asks where it is crowded; they ask it always."""
TENANTS = (0.5, 0.25, 0.15, 0.1)
"""How much of the jobs each tenant submits."""
PRIORITIES = {20: 0.1, 50: 0.8, 80: 0.1}
"""Priority -> the share of jobs that have it."""
SPARE = 2
"""So many times as many jobs are drawn, since some have no place even on the empty cluster."""
SHAPES = 2_000
"""So many jobs at most are drawn and tried on the empty cluster; where more arrive, these come again, in turn."""
PACED = 400
"""So many of the jobs, the first ones, tell how fast the cluster gets through them."""
MULTI = "ces-multi"


@dataclass(frozen=True)
class Question:
    """What is compared. ``repeats`` clusters and sequences of jobs are drawn; every policy meets all of them at every
    load. ``bound_s``: who waits longer has starved. ``trace``: arrivals, durations and sizes in place of chance.
    ``misjudged``: jobs state the time that they run times a lognormal factor of this sigma. ``only``: names of those
    that are run; empty: all of :meth:`policies`."""

    regimes: tuple[str, ...]
    loads: tuple[float, ...]
    nodes: int
    jobs: int
    tasks: tuple[int, ...]
    duration_s: float
    bound_s: float
    repeats: int
    seed: int
    solver: str
    time_limit_s: float | None
    trace: Path | None = None
    misjudged: float = 0.0
    only: tuple[str, ...] = ()

    def cluster(self, regime: str, repeat: int) -> Cluster:
        return read_instance(
            random_instance(regime, derived_seed(self.seed, repeat), nodes=self.nodes, tasks=1)
        ).cluster

    def workload(self, regime: str, repeat: int, cluster: Cluster) -> list[TimedJob]:
        """Jobs that the solver and least-allocated find a place for on the empty cluster, with tenants,
        priorities and the durations that they state."""
        seed = derived_seed(self.seed, repeat, 1)
        count = min(self.jobs, SHAPES)
        if self.trace is None:
            drawn = poisson(SPARE * count, 1.0, self.duration_s, self.tasks, seed, regime=regime)
        else:
            drawn = from_trace(self.trace, seed, limit=SPARE * count, largest=max(self.tasks), regime=regime)
        placed = list(islice((job for job in drawn if self._has_a_place(job, cluster)), count))
        if self.jobs > len(placed) and self.trace is None:
            placed = self._again(placed, derived_seed(self.seed, repeat, 3))
        rng = np.random.default_rng(derived_seed(self.seed, repeat, 2))
        tenants = rng.choice(len(TENANTS), len(placed), p=TENANTS).tolist()
        priorities = rng.choice(list(PRIORITIES), len(placed), p=list(PRIORITIES.values())).tolist()
        factors = rng.lognormal(0.0, self.misjudged, len(placed)).tolist() if self.misjudged else [1.0] * len(placed)
        return [
            replace(
                job,
                arrival_s=job.arrival_s - placed[0].arrival_s,
                tenant=f"tenant-{tenant}",
                priority=priority,
                expected_s=job.duration_s * factor,
            )
            for job, tenant, priority, factor in zip(placed, tenants, priorities, factors, strict=True)
        ]

    def _again(self, shapes: Sequence[TimedJob], seed: int) -> list[TimedJob]:
        """As many jobs as are asked for, with the tasks and flows of these, and other arrivals and durations."""
        rng = np.random.default_rng(seed)
        arrivals = np.cumsum(rng.exponential(1.0, self.jobs)).tolist()
        durations = rng.exponential(self.duration_s, self.jobs).tolist()
        return [
            replace(shapes[i % len(shapes)], name=f"j{i}", arrival_s=arrival, duration_s=duration)
            for i, (arrival, duration) in enumerate(zip(arrivals, durations, strict=True))
        ]

    def policies(self, load: float | None = None) -> dict[str, tuple[str, Policy]]:
        """Name -> placement and policy, all that are compared at this load, or at any. Ablations meet the highest load
        only."""
        full = Parameters(bound_s=self.bound_s)
        found: dict[str, tuple[str, Policy]] = {}
        for policy in (*RIVALS, Cycles(MULTI, full)):
            found[policy.name] = self.solver, policy
            if self.solver != LEAST_ALLOCATED:
                found[f"{policy.name} ({LEAST_ALLOCATED})"] = LEAST_ALLOCATED, policy
        if load is None or load == max(self.loads):
            if isinstance(get_solver(self.solver), Foreseeing):
                found |= {f"{policy.name} ({SPARING})": (SPARING, policy) for policy in RIVALS}
            found |= {name: (self.solver, Cycles(name, part)) for name, part in ablations(full).items()}
        return {name: policy for name, policy in found.items() if not self.only or name in self.only}

    def placing(self, placement: str) -> Solver:
        """The solver behind the name of a placement."""
        return foreseeing(get_solver(self.solver)) if placement == SPARING else get_solver(placement)

    def _has_a_place(self, job: TimedJob, cluster: Cluster) -> bool:
        problem = Problem.make(cluster, job.tasks, job.flows, name=job.name)
        return all(
            get_solver(name).solve(problem, seed=self.seed, time_limit_s=self.time_limit_s).feasible
            for name in (LEAST_ALLOCATED, self.solver)
        )


def ablations(full: Parameters) -> dict[str, Parameters]:
    """CES-Multi without one of its parts."""
    return {
        "without sparing room": replace(full, crowded=None),
        "without waiting for bandwidth": replace(full, declined=None),
        "without reservations": replace(full, reservations=0),
        "without protection": replace(full, overdue=None, waiting=0.0),
        "window of 1": replace(full, window=1),
        "without a window": replace(full, window=None),
    }


def paced(jobs: Sequence[TimedJob], cluster: Cluster, load: float, question: Question) -> list[TimedJob]:
    """The same jobs in the same rhythm, so that they take ``1 / load`` of the time to arrive in which the cluster gets
    through them: until the last of them has started, where all are there from the beginning and are taken in order of
    arrival, with backfill."""
    at_once = [replace(job, arrival_s=0.0) for job in jobs[:PACED]]
    solver, policy = get_solver(question.solver), FirstComeFirstServed()
    outcome = simulate(
        cluster, at_once, solver, policy, seed=question.seed, time_limit_s=question.time_limit_s, screen=True
    )
    through_s = max(fate.started_s for fate in outcome.accepted if fate.started_s is not None)
    stretch = through_s * (len(jobs) / len(at_once)) / load / (jobs[-1].arrival_s or 1.0)
    return [replace(job, arrival_s=job.arrival_s * stretch) for job in jobs]


Runs = dict[tuple[float, str], dict[str, float]]


def cell(question: Question, regime: str, repeat: int) -> Runs:
    """One cluster and its jobs, at every load by every policy: what each comes to."""
    for placement in (question.solver, LEAST_ALLOCATED, SPARING):
        warm_up(question.placing(placement))
    cluster = question.cluster(regime, repeat)
    cluster.topology.paths.warm()
    jobs = question.workload(regime, repeat, cluster)
    found = {}
    for load in question.loads:
        arriving = paced(jobs, cluster, load, question)
        for name, (solver, policy) in question.policies(load).items():
            began = time.process_time()
            outcome = simulate(
                cluster, arriving, question.placing(solver), policy,
                seed=question.seed, time_limit_s=question.time_limit_s, screen=True,
            )  # fmt: skip
            found[load, name] = measures(outcome, question.bound_s) | {"cpu_s": time.process_time() - began}
    return found


def compare(question: Question, processes: int, advance: Callable[[], None]) -> dict[str, Any]:
    """Run them all: per regime, load and policy, spreads over the repeats. ``processes`` at once. Raises
    BadDecisionError, and ProblemError for a trace that cannot be read."""
    cells = [(regime, repeat) for regime in question.regimes for repeat in range(question.repeats)]
    found: dict[tuple[str, int], Runs] = {}
    for where, runs in zip(cells, _each(question, cells, processes), strict=True):
        found[where] = runs
        advance()
    regimes = {
        regime: {
            f"{load:g}": {
                "policies": _told(
                    {
                        name: [found[regime, repeat][load, name] for repeat in range(question.repeats)]
                        for name in question.policies(load)
                    }
                )
            }
            for load in question.loads
        }
        for regime in question.regimes
    }
    told = asdict(question) | {"trace": question.trace.name if question.trace else None}
    return {"question": told, "regimes": regimes}


def _each(question: Question, cells: Sequence[tuple[str, int]], processes: int) -> Iterator[Runs]:
    if processes == 1:
        yield from (cell(question, *where) for where in cells)
        return
    with ProcessPoolExecutor(processes) as pool:
        regimes, repeats = zip(*cells, strict=True)
        yield from pool.map(cell, [question] * len(cells), regimes, repeats)


def _told(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """Spreads over the repeats; ``ahead_s``: by how much mean waiting is longer than under CES-Multi, if that ran."""
    ours = runs.get(MULTI, ())
    return {
        name: {what: spread(run[what] for run in each) for what in (*MEASURES, "cpu_s")}
        | {"ahead_s": spread(their["wait_s"] - our["wait_s"] for their, our in zip(each, ours, strict=False))}
        for name, each in runs.items()
    }
