"""Jobs as the queue knows them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ces_core.errors import ProblemError
from ces_core.multi.parameters import DEFAULT_TENANT, LEAST_PRIORITY, MOST_PRIORITY
from ces_core.problem import Cluster, FloatArray, Problem

Preemption = Literal["stop", "suspend"]
KEPT = "/suspended"


@dataclass(frozen=True, eq=False)
class WaitingJob:
    """A job in the queue. ``problem`` says what it asks for, on any cluster of the same topology. ``expected_s``: how
    long it says it will run; None where it does not say.

    Raises ProblemError, naming the field.
    """

    name: str
    problem: Problem
    submitted_s: float
    priority: int = 50
    tenant: str = DEFAULT_TENANT
    expected_s: float | None = None

    def __post_init__(self) -> None:
        if not LEAST_PRIORITY <= self.priority <= MOST_PRIORITY:
            raise ProblemError("job.priority", f"must be within 0..100, is {self.priority}")
        if not math.isfinite(self.submitted_s):
            raise ProblemError("job.submitted_s", f"must be a time, is {self.submitted_s}")
        if self.expected_s is not None and not (math.isfinite(self.expected_s) and self.expected_s >= 0):
            raise ProblemError("job.expected_s", f"must be seconds from 0 on, is {self.expected_s}; leave it out")

    @cached_property
    def demand(self) -> FloatArray:
        """(amounts,): what the tasks ask for together, and the flows at least."""
        return np.append(self.problem.demand.sum(axis=0), self.problem.flow_min.sum())

    @cached_property
    def largest(self) -> FloatArray:
        """(resources,): the most that any one task asks for."""
        return np.asarray(self.problem.demand.max(axis=0))

    def on(self, cluster: Cluster) -> Problem:
        """The job on this cluster."""
        return replace(self.problem, cluster=cluster)


@dataclass(frozen=True)
class RunningJob:
    """A job that the ledger holds. ``expected_s``: how long it said it would run. ``preemption``: what may become of it
    for a job of higher priority: ``suspend`` frees its CPU and bandwidth, ``stop`` all that it holds; None: nothing.

    A suspended job is two: one that runs, by :func:`kept_by`, and holds the rest, and one that waits for its CPU and
    bandwidth on the nodes where it is.
    """

    name: str
    started_s: float
    tenant: str = DEFAULT_TENANT
    expected_s: float | None = None
    priority: int = 50
    preemption: Preemption | None = None

    @property
    def leaving(self) -> bool:
        """Whether it is being ended."""
        return self.expected_s == 0.0


def kept_by(job: str) -> str:
    """The name by which a suspended job holds what it keeps."""
    return job + KEPT


def whose(name: str) -> str:
    """The job that holds something by this name."""
    return name.removesuffix(KEPT)
