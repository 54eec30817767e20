"""The scale benchmark: one large cluster, many jobs, one process for each solver and size.

A process of its own knows no path yet, so that its first decision is truly a first one, and its memory is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from typing import Any

import psutil
from rich.progress import Progress

from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.parts import Flow, Task
from ces_core.model.problem import Problem
from ces_core.registry import get_solver
from ces_core.warm_up import warm_up
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.spread import share, spread
from ces_sim.decision import decide
from ces_sim.rounds import derived_seed


@dataclass(frozen=True)
class Question:
    """What is compared. ``limits``: time limits in seconds. ``reference`` is asked for every job, untimed, with
    ``reference_s`` seconds, so that there is something good to compare with."""

    nodes: tuple[int, ...]
    topology: str
    regime: str
    tasks: int
    jobs: int
    seed: int
    solvers: tuple[str, ...]
    limits: tuple[float, ...]
    reference: str
    reference_s: float

    def instances(self, nodes: int) -> list[dict[str, Any]]:
        """One cluster, and on it a job for each instance."""
        seed = derived_seed(self.seed, nodes)
        whole = random_instance(self.regime, seed, nodes=nodes, tasks=self.tasks, topology=self.topology)
        jobs = [whole["job"]]
        for number in range(1, self.jobs):
            other = random_instance(self.regime, derived_seed(self.seed, nodes, number), nodes=1, tasks=self.tasks)
            jobs.append(other["job"])
        return [{**whole, "job": job} for job in jobs]


@dataclass(frozen=True)
class Taken:
    """One decision: how long, and the composite of its plan, if any."""

    wall_ms: float
    composite: float | None


@dataclass(frozen=True)
class Measured:
    """What one process saw.

    ``new``: every job when it was new, the very first decision at its head; ``known``: per time limit, every job again,
    with its paths known. Memory in bytes: with the cluster read, and after the last decision.
    """

    new: Sequence[Taken]
    known: Mapping[float, Sequence[Taken]]
    memory_before: int
    memory_after: int


def measure(question: Question, progress: Progress) -> Found:
    """One process after the other, and what they saw. Raises BadDecisionError."""
    advance = counted(progress, "solvers and sizes", len(question.nodes) * (len(question.solvers) + 1))
    sizes = {}
    for nodes in question.nodes:
        instances = question.instances(nodes)
        reference = alone(instances, question.reference, question.seed, question.reference_s)
        advance()
        found = {}
        for name in question.solvers:
            found[name] = alone(instances, name, question.seed, question.limits[-1], question.limits)
            advance()
        sizes[str(nodes)] = {"links": len(instances[0]["links"])} | summarise(found, reference)
    return Found({"question": asdict(question), "sizes": sizes})


def alone(
    instances: Sequence[Mapping[str, Any]], name: str, seed: int, new_limit: float, limits: Sequence[float] = ()
) -> Measured:
    """Decides in a process of its own. ``instances`` share one cluster; ``new_limit`` is for jobs that are new. Raises
    BadDecisionError."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(decided, instances, name, seed, new_limit, limits).result()


def decided(
    instances: Sequence[Mapping[str, Any]], name: str, seed: int, new_limit: float, limits: Sequence[float]
) -> Measured:
    """The same in this process."""
    solver, process = get_solver(name), psutil.Process()
    warm_up(solver)
    problems = _problems(instances)
    before = process.memory_info().rss
    new: list[Taken] = []
    known: dict[float, list[Taken]] = {limit: [] for limit in limits}
    for instance, problem in zip(instances, problems, strict=True):
        for into, limit in ((new, new_limit), *((known[limit], limit) for limit in limits)):
            cluster = problem.cluster
            fresh = replace(problem, cluster=cluster.with_used(cluster.node_used, cluster.link_used))
            decision = decide(solver, fresh, instance, seed=seed, time_limit_s=limit)
            metrics = decision.result.metrics
            into.append(Taken(decision.wall_s * 1e3, metrics.composite if metrics else None))
    return Measured(new, known, before, process.memory_info().rss)


def _problems(instances: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """All on one cluster."""
    cluster = read_instance(instances[0]).cluster
    return [
        Problem.make(
            cluster,
            (Task(**task) for task in instance["job"]["tasks"]),
            (Flow(**flow) for flow in instance["job"]["flows"]),
        )
        for instance in instances
    ]


def summarise(found: Mapping[str, Measured], reference: Measured) -> dict[str, Any]:
    """Per solver and time limit (``solver @ 20 ms``). Pure."""
    runs = [run for each in (*found.values(), reference) for run in (each.new, *each.known.values())]
    best = [
        max((taken.composite for taken in job if taken.composite is not None), default=None)
        for job in zip(*runs, strict=True)
    ]
    entries = {}
    for name, each in found.items():
        for limit, known in each.known.items():
            placed = [
                (taken.composite, top) for taken, top in zip(known, best, strict=True) if taken.composite is not None
            ]
            entries[label(name, limit)] = {
                "first_ms": spread([each.new[0].wall_ms]),
                "new_ms": spread(taken.wall_ms for taken in each.new[1:]),
                "wall_ms": spread(taken.wall_ms for taken in known),
                "placed": share(len(placed), len(known)),
                "composite_or_0": spread(taken.composite or 0.0 for taken in known),
                "regret": spread(top - composite for composite, top in placed if top is not None),
                "memory_mib": spread([each.memory_after / 2**20]),
                "memory_grown_mib": spread([(each.memory_after - each.memory_before) / 2**20]),
            }
    return {"placed_by_somebody": sum(top is not None for top in best), "entries": entries}


def label(name: str, limit: float) -> str:
    return f"{name} @ {limit * 1e3:g} ms"
