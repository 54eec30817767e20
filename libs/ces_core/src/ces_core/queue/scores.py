"""What orders waiting jobs: the score, part by part, in doublings (see :class:`ces_core.queue.parameters.Parameters`),
and beyond score and age the preemption ranks and fairness between tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ces_core.model.problem import RESOURCES, BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.parameters import AMOUNTS, MOST_PRIORITY, Parameters
from ces_core.queue.shares import Shares

CHEAPEST = 1e-9
"""Lower limit for the share and the seconds of a job that asks for nothing or ends at once."""
FURTHEST = 4.0
"""Upper limit for a tenant's share, in fair shares."""
PARTS = ("fit", "priority", "waiting", "share")


@dataclass(frozen=True)
class Score:
    """The parts of a score, which add up to ``total``; the highest goes first. ``scarce``: the resource of which the
    job asks for the largest share of what is free."""

    fit: float
    priority: float
    waiting: float
    share: float
    scarce: str

    @property
    def total(self) -> float:
        return self.fit + self.priority + self.waiting + self.share


NO_SCORE = Score(0.0, 0.0, 0.0, 0.0, "")
"""Of a job that no score was worked out for."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of all jobs, by line."""

    parts: FloatArray  # (jobs, parts)
    scarce: IntArray  # (jobs,)

    def of(self, line: int) -> Score:
        fit, priority, waiting, share = self.parts[line].tolist()
        return Score(fit, priority, waiting, share, AMOUNTS[int(self.scarce[line])])


class Table:
    """The queue as arrays, one line per job. ``tasks``: demands of all tasks, job after job; ``first`` and ``count``:
    where each job's tasks begin and how many there are. ``tenant``: index into ``tenants``."""

    def __init__(self, jobs: Sequence[WaitingJob], now_s: float) -> None:
        self.jobs = tuple(jobs)
        demands = [job.problem.demand for job in jobs]
        flows = np.array([job.demand[-1] for job in jobs], dtype=np.float64)
        self.tasks: FloatArray = np.concatenate([np.empty((0, len(RESOURCES))), *demands])
        self.count: IntArray = np.array([len(demand) for demand in demands], dtype=np.int64)
        self.first: IntArray = np.cumsum(self.count) - self.count
        self.demand: FloatArray = np.column_stack([self.of_tasks(np.add), flows])
        self.largest: FloatArray = self.of_tasks(np.maximum)
        self.tenants = tuple(dict.fromkeys(job.tenant for job in jobs))
        number = {name: i for i, name in enumerate(self.tenants)}
        self.tenant: IntArray = np.array([number[job.tenant] for job in jobs], dtype=np.int64)
        self.waited: FloatArray = now_s - np.array([job.submitted_s for job in jobs], dtype=np.float64)
        self.priority: FloatArray = np.array([job.priority for job in jobs], dtype=np.float64)
        self.expected = _expected(jobs)

    def of_tasks(self, what: np.ufunc) -> FloatArray:
        """(jobs, resources): a reduction, such as the sum, over each job's tasks."""
        return np.asarray(what.reduceat(self.tasks, self.first) if self.jobs else self.tasks)

    def scores(self, parameters: Parameters, free: FloatArray, against_fair: Mapping[str, float]) -> Scores:
        """The scores of all jobs. ``free``: amounts; ``against_fair``: tenant -> its share relative to the fair one."""
        shares = self._shares(free)
        cost = np.maximum(shares.max(axis=1, initial=0.0), CHEAPEST) * self.expected
        typical = float(np.median(cost)) if len(cost) else 1.0
        overdue = parameters.overdue_s if np.isfinite(parameters.overdue_s) else parameters.bound_s
        ahead = np.array([1.0 - min(against_fair[name], FURTHEST) for name in self.tenants])[self.tenant]
        parts = (
            parameters.fit * np.log2(typical / cost),
            parameters.priority * (self.priority / MOST_PRIORITY - 0.5),
            parameters.waiting * self.waited / max(overdue, CHEAPEST),
            parameters.share * ahead,
        )
        return Scores(np.array(parts, dtype=np.float64).T.reshape(len(self.jobs), len(PARTS)), shares.argmax(axis=1))

    def _shares(self, free: FloatArray) -> FloatArray:
        """(jobs, amounts): each job's demand as a share of what is free; above 1 if there is too little."""
        floor = np.maximum(free, CHEAPEST * np.maximum(self.demand.max(axis=0, initial=0.0), CHEAPEST))
        return np.asarray(self.demand / floor)


def _expected(jobs: Sequence[WaitingJob]) -> FloatArray:
    """(jobs,): expected run time in seconds; jobs that state none get the median of the others."""
    said = [job.expected_s for job in jobs if job.expected_s is not None]
    usual = float(np.median(said)) if said else 1.0
    expected = [usual if job.expected_s is None else job.expected_s for job in jobs]
    return np.maximum(np.array(expected, dtype=np.float64), CHEAPEST)


def ranks(table: Table, margin: int | None) -> IntArray:
    """(jobs,): a job that could preempt another has a higher rank, so that no job starts only to be preempted at once.
    All equal without preemption."""
    priorities = np.array([job.priority for job in table.jobs], dtype=np.int64)
    return np.zeros_like(priorities) if margin is None else priorities // margin


def firsts(table: Table, shares: Shares, order: Sequence[int], left: BoolArray) -> BoolArray:
    """(jobs,): the best job of each tenant with no running job, among those ``left``. ``order``: by score."""
    found = np.zeros(len(left), dtype=np.bool_)
    idle = shares.idle()
    for line in order if idle else ():
        tenant = table.jobs[line].tenant
        if left[line] and tenant in idle:
            found[line] = True
            idle.discard(tenant)
    return found


def flooded(table: Table, window: int, others: BoolArray) -> BoolArray:
    """(jobs,): jobs behind at least ``window`` jobs of other tenants (among ``others``), which would fill it."""
    tenants = table.tenant[others]
    ahead = len(tenants) - np.bincount(tenants, minlength=len(table.tenants))
    return np.asarray(ahead >= window)[table.tenant]
