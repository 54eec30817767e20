"""The input, output and memory of a queue cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from ces_core.model.plan import Plan
from ces_core.model.problem import Cluster
from ces_core.model.reason import Reason
from ces_core.queue.jobs import RunningJob, WaitingJob
from ces_core.queue.ledger import Ledger
from ces_core.queue.reservations import Preempted, Reservation, moved_to
from ces_core.queue.scores import NO_SCORE, Score
from ces_core.queue.status import QueueStatus


@dataclass(frozen=True)
class Refusal:
    """Why the solver refused a job. Valid until something becomes free after ``freed``, at most until ``until_s``, or
    ``forever``. ``reservable``: False if no future start was found either."""

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
    """These running jobs together could not make way for a job when ``freed`` was the count; or none had to, until
    ``until_s``."""

    freed: int
    victims: tuple[str, ...]
    until_s: float = math.inf


@dataclass(frozen=True)
class Memory:
    """What a cycle hands to the next on the same cluster: use may differ, capacity may not. Losing it costs time and
    the reservations, nothing else."""

    freed: int = 0
    reservations: tuple[Reservation, ...] = ()
    refusals: Mapping[str, Refusal] = field(default_factory=lambda: MappingProxyType({}))
    unmoved: Mapping[str, Unmoved] = field(default_factory=lambda: MappingProxyType({}))


def carried(memory: Memory, waiting: Sequence[WaitingJob], cluster: Cluster) -> Memory:
    """The part of a memory that stays valid on another cluster, or after allowed nodes changed: reservations whose plan
    is possible there. Refusals are dropped."""
    jobs = {job.name: job for job in waiting}
    moved = [moved_to(cluster, jobs[each.job], each) for each in memory.reservations if each.job in jobs]
    return Memory(memory.freed, tuple(each for each in moved if each is not None))


@dataclass(frozen=True, eq=False)
class State:
    """The input of a cycle. ``ledger`` holds what runs and is not changed. ``freed`` counts up when something becomes
    free, a job with a reservation leaves the queue, or the cluster gains capacity. ``waiting`` and ``running`` may be
    in any order. ``changed``: waiting jobs that ask for something else than in the last cycle."""

    now_s: float
    ledger: Ledger
    waiting: Sequence[WaitingJob]
    running: Sequence[RunningJob]
    freed: int
    memory: Memory = Memory()
    changed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Start:
    """A job that starts. ``position``: its place in the queue when it was chosen, from 1. ``reserved``: it had a
    reservation. A policy that neither scores nor reserves leaves out all but the first two."""

    job: str
    plan: Plan
    position: int = 1
    score: Score = NO_SCORE
    overdue: bool = False
    reserved: bool = False


@dataclass(frozen=True, eq=False)
class Decisions:
    """The output of a cycle: ``starts`` in the order of decision. ``refused``: why the solver refused other jobs.
    ``preempted``: waiting job -> running jobs that must make way, repeated until they have. ``more``: the window or the
    number of starts ran out, so another cycle may start more jobs even if nothing changes."""

    starts: tuple[Start, ...]
    memory: Memory = Memory()
    refused: Mapping[str, Reason] = field(default_factory=lambda: MappingProxyType({}))
    preempted: Mapping[str, Preempted] = field(default_factory=lambda: MappingProxyType({}))
    more: bool = False
    _explain: Callable[[], tuple[QueueStatus, ...]] = tuple

    @cached_property
    def queue(self) -> tuple[QueueStatus, ...]:
        """The status of each job that goes on waiting, in queue order. Computed on first use."""
        return self._explain()
