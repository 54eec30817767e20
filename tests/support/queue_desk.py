"""Cycles of CES-Multi on a small cluster, one after the other."""

from __future__ import annotations

from ces_core.model.parts import Node, Task
from ces_core.model.plan import Plan, Result
from ces_core.model.problem import Cluster, Problem
from ces_core.queue.cycle import cycle
from ces_core.queue.jobs import Preemption, RunningJob, WaitingJob
from ces_core.queue.ledger import Ledger
from ces_core.queue.parameters import Parameters
from ces_core.queue.state import Decisions, Memory, State
from ces_core.registry import get_solver
from ces_core.search.solver import SEARCH

GREEDY = get_solver("greedy")
FRAGMENTATION_AWARE = SEARCH.with_lookahead()
PLAIN = Parameters(bound_s=100, overdue=0.5)


def solve(job: WaitingJob, cluster: Cluster) -> Result:
    return GREEDY.solve(job.on(cluster))


def solve_fragmentation_aware(job: WaitingJob, cluster: Cluster) -> Result:
    return FRAGMENTATION_AWARE.solve(job.on(cluster))


def one_node(cpu: float = 10) -> Cluster:
    return Cluster.make([Node("n", cpu=cpu, memory=100)], [])


def wants(
    cluster: Cluster,
    name: str,
    cpu: float,
    *,
    submitted: float = 0,
    lasts: float | None = 10,
    priority: int = 50,
    tenant: str = "default",
    memory: float = 0,
    pressing: bool = False,
) -> WaitingJob:
    problem = Problem.make(cluster, [Task("t", cpu=cpu, memory=memory)], name=name)
    return WaitingJob(name, problem, submitted, priority, tenant, lasts, pressing)


class Desk:
    """A cluster on which cycles run one after the other."""

    def __init__(self, cluster: Cluster, parameters: Parameters = PLAIN) -> None:
        self.ledger, self.parameters = Ledger(cluster), parameters
        self.cluster = cluster
        self.running: list[RunningJob] = []
        self.waiting: list[WaitingJob] = []
        self.memory, self.freed = Memory(), 0

    def run(self, job: WaitingJob, since: float = 0, preemption: Preemption | None = None) -> None:
        """The job already runs."""
        plan = solve(job, self.ledger.cluster).plan
        assert plan is not None
        self._begin(job, plan, since, preemption)

    def end(self, name: str) -> None:
        self.ledger.release(name)
        self.running = [job for job in self.running if job.name != name]
        self.freed += 1

    def at(self, now: float, *jobs: WaitingJob) -> Decisions:
        self.waiting += jobs
        state = State(now, self.ledger, self.waiting, self.running, self.freed, self.memory)
        decided = cycle(state, self.parameters, solve, solve_fragmentation_aware)
        self.memory = decided.memory
        for start in decided.starts:
            job = next(job for job in self.waiting if job.name == start.job)
            self.waiting.remove(job)
            self._begin(job, start.plan, now)
        return decided

    def _begin(self, job: WaitingJob, plan: Plan, now: float, preemption: Preemption | None = None) -> None:
        self.ledger.hold(job.name, job.problem, plan)
        self.running.append(RunningJob(job.name, now, job.tenant, job.expected_s, job.priority, preemption))


def started(decided: Decisions) -> list[str]:
    return [start.job for start in decided.starts]


def queued(decided: Decisions) -> list[str]:
    return [queue_status.job for queue_status in decided.queue]
