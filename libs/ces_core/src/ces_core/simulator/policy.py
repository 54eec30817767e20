"""Which waiting jobs are tried, in what order. A policy sees a :class:`Desk` and starts what it will."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ces_core.plan import Plan, Result
from ces_core.problem import Cluster
from ces_core.simulator.workload import TimedJob


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

    def decide(self, job: TimedJob) -> Result:
        """What the solver says of this job on the cluster as it is now. Takes nothing; asking again costs nothing
        until a job starts, and a refusal stands until something has become free."""

    def start(self, job: TimedJob, plan: Plan) -> None:
        """Give the job its place. Raises ces_core.simulator.ledger.OverCapacityError where the plan does not fit."""


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
