"""How long a cycle takes where the queue never empties: one job leaves, one comes, and the queue is decided again."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from ces_core.model.plan import Result
from ces_core.model.problem import Cluster, Problem
from ces_core.network.cache import paths_of
from ces_core.queue.cycle import cycle
from ces_core.queue.jobs import RunningJob, WaitingJob
from ces_core.queue.ledger import Ledger
from ces_core.queue.parameters import Parameters
from ces_core.queue.state import Memory, State
from ces_core.registry import get_solver
from ces_core.solver import Solver, with_lookahead
from ces_core.warm_up import warm_up
from ces_experiments.common.spread import spread
from ces_sim.arrivals import poisson
from ces_sim.offered import drawn_cluster
from ces_sim.rounds import derived_seed

LEFT_OUT = 10
"""Cycles at the beginning, which fill the empty cluster, that are not counted."""


@dataclass(frozen=True)
class Crowd:
    """A queue kept at ``waiting`` jobs on ``nodes`` nodes, decided ``cycles`` times."""

    nodes: int
    waiting: int
    cycles: int
    regime: str
    tasks: tuple[int, ...]
    duration_s: float
    bound_s: float
    seed: int
    solver: str
    time_limit_s: float | None


def measure(crowd: Crowd, advance: Callable[[], None]) -> dict[str, Any]:
    """The time of a cycle with all that the solver is asked in it, in milliseconds: what a caller waits, and what the
    process computes meanwhile. And how often the solver was asked."""
    solver = get_solver(crowd.solver)
    fragmentation_aware = with_lookahead(solver)
    warm_up(solver)
    cluster = drawn_cluster(crowd.regime, crowd.seed, nodes=crowd.nodes)
    paths_of(cluster.topology).warm()
    drawn = poisson(
        2 * crowd.waiting + 10 * (crowd.cycles + LEFT_OUT), 1.0, crowd.duration_s, crowd.tasks,
        derived_seed(crowd.seed, 1), regime=crowd.regime,
    )  # fmt: skip
    coming = [
        WaitingJob(job.name, Problem.make(cluster, job.tasks, job.flows, name=job.name), 0.0, expected_s=job.duration_s)
        for job in reversed(drawn)
    ]
    asked = 0

    def solve(who: Solver, job: WaitingJob, where: Cluster) -> Result:
        nonlocal asked
        asked += 1
        return who.solve(job.on(where), seed=crowd.seed, time_limit_s=crowd.time_limit_s)

    ledger, memory, now = Ledger(cluster), Memory(), 0.0
    waiting: dict[str, WaitingJob] = {}
    running: dict[str, RunningJob] = {}
    ends: list[tuple[float, str]] = []
    parameters = Parameters(bound_s=crowd.bound_s)
    walls: list[float] = []
    cpus: list[float] = []
    asks: list[int] = []
    for number in range(crowd.cycles + LEFT_OUT):
        while len(waiting) < crowd.waiting:
            job = coming.pop()
            waiting[job.name] = replace(job, submitted_s=now)
        asked, began, cpu = 0, time.perf_counter(), time.process_time()
        state = State(now, ledger, list(waiting.values()), list(running.values()), number, memory)
        decided = cycle(state, parameters, partial(solve, solver), partial(solve, fragmentation_aware))
        if number >= LEFT_OUT:
            walls.append((time.perf_counter() - began) * 1e3)
            cpus.append((time.process_time() - cpu) * 1e3)
            asks.append(asked)
        memory = decided.memory
        for name in decided.refused:
            if decided.refused[name].permanent:
                del waiting[name]
        for start in decided.starts:
            job = waiting.pop(start.job)
            ledger.hold(job.name, job.problem, start.plan)
            running[job.name] = RunningJob(job.name, now, expected_s=job.expected_s)
            heapq.heappush(ends, (now + (job.expected_s or 0.0), job.name))
        now, ended = heapq.heappop(ends)
        ledger.release(ended)
        del running[ended]
        advance()
    return {"crowd": asdict(crowd), "cycle_ms": spread(walls), "cpu_ms": spread(cpus), "asked": spread(asks)}
