"""The benchmark of queues: the same jobs arrive at the same clusters, once for each policy, placement and load."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.progress import Progress

from ces_core.model.errors import QueuePolicyError
from ces_core.model.problem import Cluster, Problem
from ces_core.network.cache import paths_of
from ces_core.queue.parameters import Parameters
from ces_core.queue.policies import CES_MULTI, get_queue_policy, queue_policy_names
from ces_core.registry import get_solver
from ces_core.solver import Solver, SupportsLookahead, with_lookahead
from ces_core.warm_up import warm_up
from ces_experiments.common import options, words
from ces_experiments.common.cells import each
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.queue import multi_cycles
from ces_experiments.queue import trace as traces
from ces_experiments.queue.multi_measures import MEASURES, measures
from ces_experiments.queue.raw import job_rows
from ces_sim.arrivals import TimedJob, from_trace, poisson
from ces_sim.cluster import simulate
from ces_sim.offered import drawn_cluster, stretched
from ces_sim.queue_policies import RIVALS, Cycles
from ces_sim.queue_policy import FirstComeFirstServed, Policy
from ces_sim.rounds import derived_seed

LEAST_ALLOCATED = "least-allocated"
"""The placement that every policy is run with as well."""
SPARING = "sparing room"
"""And at the highest load the others by the solver that CES-Multi asks where it is crowded; they ask it always."""
TENANTS = (0.5, 0.25, 0.15, 0.1)
"""How much of the jobs each tenant submits."""
PRIORITIES = {20: 0.1, 50: 0.8, 80: 0.1}
"""Priority -> the share of jobs that have it."""
SPARE = 2
"""Factor by which more jobs are drawn than needed, since some have no place even on the empty cluster."""
SHAPES = 2_000
"""Maximum number of jobs drawn and tried on the empty cluster; where more arrive, these come again, in turn."""
PACED = 400
"""Number of jobs, the first ones, by which the cluster's pace is measured."""


@dataclass(frozen=True)
class Question:
    """What is compared. ``repeats`` clusters and sequences of jobs are drawn; every policy meets all of them at every
    load. ``bound_s``: who waits longer has starved. ``trace``: arrivals, durations and sizes in place of chance; a load
    of None keeps its arrivals.
    ``misjudged``: jobs state the time that they run times a lognormal factor of this sigma. ``only``: names of those
    that are run; empty: all of :meth:`policies`. ``cycles`` are timed apart; ``processes`` run at once."""

    regimes: tuple[str, ...]
    loads: tuple[float | None, ...]
    nodes: int | None
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
    cycles: int = 0
    processes: int = 1
    topology: str = "random"

    @staticmethod
    def of(
        *, loads: tuple[float, ...], trace: Path | None, as_timed: bool, only: str | None, **values: Any
    ) -> Question:
        """With policies by name, and a trace that can be read. Raises typer.BadParameter."""
        question = Question(loads=traces.loads(loads, trace, as_timed), trace=trace, **values)
        if only is not None:
            known = dict.fromkeys([*question.policies(), *queue_policy_names()])
            question = replace(question, only=options.names("--policies", only, tuple(known)))
            try:
                question.policies()
            except QueuePolicyError as error:
                raise typer.BadParameter(str(error), param_hint="--policies") from error
        few, regime = replace(question, jobs=10), question.regimes[0]
        traces.looked_at(trace, lambda: few.workload(regime, 0, few.cluster(regime, 0)))
        return question

    def cluster(self, regime: str, repeat: int) -> Cluster:
        return drawn_cluster(regime, derived_seed(self.seed, repeat), nodes=self.nodes, topology=self.topology)

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
        only; policies of other packages take part where they are named. Raises QueuePolicyError."""
        full = Parameters(bound_s=self.bound_s)
        found: dict[str, tuple[str, Policy]] = {}
        for policy in (*RIVALS, Cycles(CES_MULTI, full)):
            found[policy.name] = self.solver, policy
            if self.solver != LEAST_ALLOCATED:
                found[f"{policy.name} ({LEAST_ALLOCATED})"] = LEAST_ALLOCATED, policy
        if load is None or load == max(each for each in self.loads if each is not None):
            if isinstance(get_solver(self.solver), SupportsLookahead):
                found |= {f"{policy.name} ({SPARING})": (SPARING, policy) for policy in RIVALS}
            found |= {name: (self.solver, Cycles(name, part)) for name, part in ablations(full).items()}
        for name in self.only:
            if name not in found and name in queue_policy_names():
                found[name] = self.solver, Cycles(name, full, get_queue_policy(name))
        return {name: policy for name, policy in found.items() if not self.only or name in self.only}

    def placing(self, placement: str) -> Solver:
        """The solver behind the name of a placement."""
        return with_lookahead(get_solver(self.solver)) if placement == SPARING else get_solver(placement)

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


def paced(jobs: Sequence[TimedJob], cluster: Cluster, load: float | None, question: Question) -> list[TimedJob]:
    """The same jobs in the same rhythm, so that they take ``1 / load`` of the time to arrive in which the cluster gets
    through them: until the last of them has started, where all are there from the beginning and are taken in order of
    arrival, with backfill. A load of None leaves them as they are."""
    if load is None:
        return list(jobs)
    at_once = [replace(job, arrival_s=0.0) for job in jobs[:PACED]]
    solver, policy = get_solver(question.solver), FirstComeFirstServed()
    outcome = simulate(
        cluster, at_once, solver, policy, seed=question.seed, time_limit_s=question.time_limit_s, screen=True
    )
    through_s = max(fate.started_s for fate in outcome.accepted if fate.started_s is not None)
    return stretched(jobs, through_s * (len(jobs) / len(at_once)) / load / (jobs[-1].arrival_s or 1.0))


Rows = list[dict[str, Any]]


def cell(question: Question, regime: str, repeat: int) -> tuple[Rows, Rows]:
    """One cluster and its jobs, at every load by every policy: what each run comes to, and every job's fate."""
    for placement in (question.solver, LEAST_ALLOCATED, SPARING):
        warm_up(question.placing(placement))
    cluster = question.cluster(regime, repeat)
    paths_of(cluster.topology).warm()
    jobs = question.workload(regime, repeat, cluster)
    runs: Rows = []
    fates: Rows = []
    for load in question.loads:
        arriving = paced(jobs, cluster, load, question)
        for name, (solver, policy) in question.policies(load).items():
            began = time.process_time()
            outcome = simulate(
                cluster, arriving, question.placing(solver), policy,
                seed=question.seed, time_limit_s=question.time_limit_s, screen=True,
            )  # fmt: skip
            cpu_s = time.process_time() - began
            where = {"regime": regime, "load": words.load(load), "repeat": repeat, "policy": name}
            runs.append(where | measures(outcome, question.bound_s) | {"cpu_s": cpu_s})
            fates += job_rows(outcome, where)
    return runs, fates


def measure(question: Question, progress: Progress) -> Found:
    """Per regime, load and policy, spreads over the repeats; and the time of cycles, if that is asked. Raises
    BadDecisionError."""
    results: dict[str, Any] = {}
    if question.cycles:
        crowd = multi_cycles.Crowd(
            nodes=100, waiting=1000, cycles=question.cycles, regime=question.regimes[0], tasks=question.tasks,
            duration_s=question.duration_s, bound_s=question.bound_s, seed=question.seed, solver=question.solver,
            time_limit_s=question.time_limit_s,
        )  # fmt: skip
        results["cycles"] = multi_cycles.measure(crowd, counted(progress, "cycles", question.cycles))
    cells = [(regime, repeat) for regime in question.regimes for repeat in range(question.repeats)]
    advance = counted(progress, "clusters", len(cells))
    runs: Rows = []
    fates: Rows = []
    for of_cell, jobs_of_cell in each(partial(_cell, question), cells, question.processes):
        runs += of_cell
        fates += jobs_of_cell
        advance()
    regimes: dict[str, Any] = {regime: {} for regime in question.regimes}
    for regime, load in dict.fromkeys((run["regime"], run["load"]) for run in runs):
        here = [run for run in runs if (run["regime"], run["load"]) == (regime, load)]
        regimes[regime][load] = {"policies": _told(here)}
    asked = asdict(question) | {"trace": question.trace.name if question.trace else None}
    return Found(results | {"question": asked, "regimes": regimes}, raw={"runs.csv": runs, "jobs.csv": fates})


def _cell(question: Question, where: tuple[str, int]) -> tuple[Rows, Rows]:
    return cell(question, *where)


def _told(runs: Rows) -> dict[str, Any]:
    """Policy -> spreads over the repeats; ``ahead_s``: by how much mean waiting is longer than under CES-Multi, if that
    ran."""
    by_policy: dict[str, Rows] = defaultdict(list)
    for run in runs:
        by_policy[run["policy"]].append(run)
    ours = by_policy.get(CES_MULTI, [])
    return {
        name: {what: spread(run[what] for run in each) for what in (*MEASURES, "cpu_s")}
        | {"ahead_s": spread(their["wait_s"] - our["wait_s"] for their, our in zip(each, ours, strict=False))}
        for name, each in by_policy.items()
    }
