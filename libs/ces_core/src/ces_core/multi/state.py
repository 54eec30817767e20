"""What a cycle of the queue is given, what it decides, and what it hands to the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from ces_core.ledger import Ledger
from ces_core.multi.explaining import Standing
from ces_core.multi.jobs import RunningJob, WaitingJob
from ces_core.multi.reservations import Preempted, Reservation, moved_to
from ces_core.multi.scoring import Score
from ces_core.plan import Plan
from ces_core.problem import Cluster
from ces_core.reason import Reason


@dataclass(frozen=True)
class Refusal:
    """Why the solver had no place for a job. It stands until something becomes free after ``freed``, at longest until
    ``until_s``, or ``forever``. ``reservable``: False where no moment was found either at which it would have one."""

    freed: int
    reason: Reason
    reservable: bool = True
    until_s: float = math.inf

    @property
    def forever(self) -> bool:
        """Whether it is proven that no job's end will help."""
        return self.reason.permanent and self.reason.proven


@dataclass(frozen=True)
class Unmoved:
    """Not all of these running jobs together could make room for a job, when so much had become free; or none had to,
    until ``until_s``."""

    freed: int
    victims: tuple[str, ...]
    until_s: float = math.inf


@dataclass(frozen=True)
class Memory:
    """What a cycle hands to the next, on the same cluster: what is free may differ, what there is may not. Losing it
    costs time and the promises made, nothing else."""

    freed: int = 0
    reservations: tuple[Reservation, ...] = ()
    refusals: Mapping[str, Refusal] = field(default_factory=lambda: MappingProxyType({}))
    unmoved: Mapping[str, Unmoved] = field(default_factory=lambda: MappingProxyType({}))


def carried(memory: Memory, waiting: Sequence[WaitingJob], cluster: Cluster) -> Memory:
    """What of a memory still means something on another cluster, or where jobs are allowed on other nodes: the promises
    to jobs whose plan is possible there. What was refused may be granted there."""
    jobs = {job.name: job for job in waiting}
    moved = [moved_to(cluster, jobs[each.job], each) for each in memory.reservations if each.job in jobs]
    return Memory(memory.freed, tuple(each for each in moved if each is not None))


@dataclass(frozen=True, eq=False)
class State:
    """``ledger`` holds what runs, and is left as it is. ``freed``: counts up whenever something has become free, a job
    for which room was kept has left the queue, or the cluster has gained; ``waiting`` and ``running`` in any order.
    ``changed``: waiting jobs that ask for something else than they did in the last cycle."""

    now_s: float
    ledger: Ledger
    waiting: Sequence[WaitingJob]
    running: Sequence[RunningJob]
    freed: int
    memory: Memory = Memory()
    changed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Start:
    """``position``: its place in the queue when it was chosen, from 1. ``reserved``: room was kept for it."""

    job: str
    plan: Plan
    position: int
    score: Score
    overdue: bool
    reserved: bool


@dataclass(frozen=True, eq=False)
class Decisions:
    """``starts`` in the order in which they were decided. ``refused``: why the solver had no place for others now.
    ``preempted``: waiting job -> the running ones that are to make room for it; told again until they have.
    ``more``: the window or the number of starts was used up before everybody's turn, so another cycle may start some
    though nothing changes."""

    starts: tuple[Start, ...]
    memory: Memory
    refused: Mapping[str, Reason]
    preempted: Mapping[str, Preempted]
    more: bool
    _explain: Callable[[], tuple[Standing, ...]]

    @cached_property
    def queue(self) -> tuple[Standing, ...]:
        """Those that go on waiting, first one first. Worked out when it is asked for."""
        return self._explain()
