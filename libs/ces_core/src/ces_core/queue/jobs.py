"""Jobs as the queue sees them: waiting and running."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ces_core.model.errors import ProblemError
from ces_core.model.problem import Cluster, FloatArray, Problem
from ces_core.queue.parameters import DEFAULT_TENANT, LEAST_PRIORITY, MOST_PRIORITY

Preemption = Literal["stop", "suspend"]
KEPT = "/suspended"
OWED = "/owed"


@dataclass(frozen=True, eq=False)
class WaitingJob:
    """A job in the queue. ``problem`` says what it asks for, on any cluster of the same topology. ``expected_s``: its
    stated run time; None if unstated. ``pressing``: it must begin now to be in time for its deadline.

    Raises ProblemError, naming the field.
    """

    name: str
    problem: Problem
    submitted_s: float
    priority: int = 50
    tenant: str = DEFAULT_TENANT
    expected_s: float | None = None
    pressing: bool = False

    def __post_init__(self) -> None:
        if not LEAST_PRIORITY <= self.priority <= MOST_PRIORITY:
            raise ProblemError("job.priority", f"must be within 0..100, is {self.priority}")
        if not math.isfinite(self.submitted_s):
            raise ProblemError("job.submitted_s", f"must be a time, is {self.submitted_s}")
        if self.expected_s is not None and not (math.isfinite(self.expected_s) and self.expected_s >= 0):
            raise ProblemError("job.expected_s", f"must be seconds from 0 on, is {self.expected_s}; leave it out")

    @cached_property
    def demand(self) -> FloatArray:
        """(amounts,): total demand of the tasks, and the sum of the flows' minimums."""
        return np.append(self.problem.demand.sum(axis=0), self.problem.flow_min.sum())

    @cached_property
    def largest(self) -> FloatArray:
        """(resources,): the largest demand of any single task."""
        return np.asarray(self.problem.demand.max(axis=0))

    def on(self, cluster: Cluster) -> Problem:
        """The job's problem on this cluster."""
        return replace(self.problem, cluster=cluster)


@dataclass(frozen=True)
class RunningJob:
    """A job that holds capacity in the ledger. ``expected_s``: its stated run time. ``preemption``: what a job of
    higher priority may do to it: ``suspend`` frees its CPU and bandwidth, ``stop`` frees everything; None: nothing.

    A suspended job is two: a running one named by :func:`kept_by` that holds the rest, and a waiting one that asks for
    CPU and bandwidth on its present nodes.
    """

    name: str
    started_s: float
    tenant: str = DEFAULT_TENANT
    expected_s: float | None = None
    priority: int = 50
    preemption: Preemption | None = None

    @property
    def leaving(self) -> bool:
        """Whether the job is being ended."""
        return self.expected_s == 0.0


def kept_by(job: str) -> str:
    """The name under which a suspended job holds what it keeps."""
    return job + KEPT


def owed_to(job: str) -> str:
    """The name under which a running job holds what it is to grow into."""
    return job + OWED


def whose(name: str) -> str:
    """The job behind such a name."""
    return name.removesuffix(KEPT).removesuffix(OWED)
