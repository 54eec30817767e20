"""Which waiting jobs are tried, in what order. A policy sees a :class:`Desk` and starts what it will."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ces_core.model.plan import Plan, Result
from ces_core.model.problem import Cluster
from ces_core.model.reason import Reason
from ces_core.queue.jobs import RunningJob, WaitingJob
from ces_core.queue.ledger import Ledger
from ces_core.queue.state import Memory
from ces_sim.arrivals import TimedJob


class Desk(Protocol):
    """What a policy may look at and do, at one moment."""

    @property
    def now(self) -> float:
        """Seconds since the simulation began."""

    @property
    def waiting(self) -> tuple[TimedJob, ...]:
        """Those without a place, by arrival. Changes as jobs start."""

    @property
    def cluster(self) -> Cluster:
        """What is used and what is free now. Changes as jobs start."""

    @property
    def ledger(self) -> Ledger:
        """What each running job holds. Only to be looked at."""

    @property
    def queue(self) -> list[WaitingJob]:
        """``waiting`` as CES-Multi knows them."""

    @property
    def running(self) -> list[RunningJob]:
        """Those with a place, by start."""

    @property
    def freed(self) -> int:
        """Counts up whenever something has become free."""

    @property
    def attained(self) -> Mapping[str, float]:
        """Tenant -> how long its tasks have run so far, in all: seconds times tasks."""

    memory: Memory
    """What the policy wants to find again next time."""

    def solve(self, job: WaitingJob, cluster: Cluster) -> Result:
        """What the solver says of this job on another cluster. Takes nothing; every call asks the solver."""

    def solve_fragmentation_aware(self, job: WaitingJob, cluster: Cluster) -> Result:
        """The same where the solver counts, if it can, what it leaves for later jobs."""

    def decide(self, job: TimedJob) -> Result:
        """What the solver says of this job on the cluster as it is now. Takes nothing; asking again costs nothing
        until a job starts, and a refusal stands until something has become free."""

    def refuse(self, name: str, reason: Reason) -> None:
        """Have it known why a job has no place now."""

    def start(self, job: TimedJob, plan: Plan) -> None:
        """Give the job its place. Raises ces_core.queue.ledger.OverCapacityError where the plan does not fit."""

    def stop(self, name: str) -> None:
        """End a running job before its time: it waits again, and starts over when its turn comes."""


class Policy(Protocol):
    """Called whenever a job has arrived or ended."""

    @property
    def name(self) -> str:
        """What results call it."""

    def serve(self, desk: Desk) -> None:
        """Start those that should run now."""


@dataclass(frozen=True)
class FirstComeFirstServed:
    """In order of arrival. With ``backfill``, a job that has no place lets those behind it try; without, they wait."""

    backfill: bool = True

    @property
    def name(self) -> str:
        return "fcfs-backfill" if self.backfill else "fcfs"

    def serve(self, desk: Desk) -> None:
        for job in desk.waiting:
            result = desk.decide(job)
            if result.plan is not None:
                desk.start(job, result.plan)
            elif not self.backfill:
                return
