"""A cluster's queue and books: jobs are tried in the order in which they came, and who has no place is passed over."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ces_common.messages.regions import ROOMS, Room, Totals
from ces_core.model.objective import metrics_of
from ces_core.model.plan import Metrics, Plan
from ces_core.model.problem import Cluster, Problem
from ces_core.queue.feasibility import apart
from ces_core.queue.ledger import Ledger
from ces_core.solver import Solver
from ces_experiments.regions.drawn import BYTES, MILLICORES
from ces_sim.arrivals import TimedJob
from ces_sim.decision import decide

SOLVER_SEED = 0


@dataclass
class Asked:
    """``cpu_s``: that each decision took for which the solver was asked: what others of the machine have is no part.
    ``screened``: those it was spared, since the tasks do not fit on the nodes together."""

    cpu_s: list[float] = field(default_factory=list)
    screened: int = 0


class Books:
    """``asked`` is told of each decision. Jobs are known by keys."""

    def __init__(self, cluster: Cluster, solver: Solver, asked: Asked) -> None:
        self._ledger, self._solver, self._asked = Ledger(cluster), solver, asked
        self._waiting: dict[str, Problem] = {}
        self._problems: dict[str, Problem] = {}  # by the job's name
        self._refused: dict[str, int] = {}  # how much had been released when it was
        self._releases = 0

    @property
    def waiting(self) -> tuple[str, ...]:
        """In the order in which they came."""
        return tuple(self._waiting)

    def wait(self, key: str, job: TimedJob) -> None:
        self._waiting[key] = self._problem(job)

    def leave(self, key: str) -> None:
        """It waits no more. Raises KeyError where it did not."""
        del self._waiting[key]

    def serve(self) -> dict[str, float]:
        """Give those their place that have one; the bandwidth satisfaction of each. A refusal stands until something is
        released. Raises BadDecisionError."""
        started: dict[str, float] = {}
        for key, problem in list(self._waiting.items()):
            if self._refused.get(key) == self._releases:
                continue
            there = replace(problem, cluster=self._ledger.cluster)
            result = self._solve(there)
            if result is None:
                self._refused[key] = self._releases
                continue
            plan, metrics = result
            self._ledger.hold(key, problem, plan)
            del self._waiting[key]
            started[key] = metrics.bandwidth_satisfaction
        return started

    def look(self, job: TimedJob) -> Metrics | None:
        """A dry run: what it would have now; None without a place. Raises BadDecisionError."""
        found = self._solve(self._problem(job))
        return None if found is None else found[1]

    def release(self, key: str) -> None:
        """Raises KeyError where it holds nothing."""
        self._ledger.release(key)
        self._releases += 1

    def totals(self) -> Totals:
        """As a manager tells them."""
        cluster = self._ledger.cluster
        cpu, memory, _ = cluster.node_free
        total = cluster.node_capacity.sum(axis=1)
        rooms, _ = np.histogram(cpu, bins=[0, *ROOMS, np.inf])
        return Totals(
            epoch="simulated",
            nodes=len(cpu),
            free=_room(cpu.sum(), memory.sum()),
            total=_room(total[0], total[1]),
            largest=_room(cpu.max(), memory.max()),
            rooms=rooms.tolist(),
            queued=len(self._waiting),
        )

    def _problem(self, job: TimedJob) -> Problem:
        """On the cluster as it is now."""
        if job.name not in self._problems:
            self._problems[job.name] = Problem.make(self._ledger.cluster, job.tasks, job.flows, name=job.name)
        return replace(self._problems[job.name], cluster=self._ledger.cluster)

    def _solve(self, problem: Problem) -> tuple[Plan, Metrics] | None:
        if not problem.homes.any(axis=1).all() or apart(problem) is not None:
            self._asked.screened += 1
            return None
        decision = decide(self._solver, problem, seed=SOLVER_SEED)
        self._asked.cpu_s.append(decision.cpu_s)
        plan = decision.result.plan
        return None if plan is None else (plan, metrics_of(problem, plan))


def _room(cpu: float, memory: float) -> Room:
    return Room(cpu=int(cpu * MILLICORES), memory=int(memory * BYTES))
