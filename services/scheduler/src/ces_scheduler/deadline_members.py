"""Jobs as the policy for deadlines knows them: what they have left to do, and how fast they are with how many slots.
Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ces_common.messages.records import JobRecord
from ces_core.malleable.model import MalleableJob, Running, SpeedProfile
from ces_core.malleable.speed import SpeedModel
from ces_core.queue.parameters import AMOUNTS, Parameters
from ces_core.queue.shares import amounts_of, capacity_of
from ces_scheduler.cycle_input import LEAVING, left_s
from ces_scheduler.job_speeds import SpeedModels, left_of
from ces_scheduler.offer import Offer
from ces_scheduler.slots import Pool, asked_of, elastic_tasks

SILENT_S: Final = 300.0  # after which a job that tells no steps has no claim
LATE_S: Final = 1e-3


@dataclass(eq=False)
class Member:
    """A job that the policy decides on. ``work``: what it has left; ``of_slots``: slots -> size."""

    record: JobRecord
    running: bool
    work: float
    profile: SpeedProfile
    of_slots: Mapping[int, int]

    @property
    def due_s(self) -> float:
        return due_of(self.record)

    @property
    def slots(self) -> int:
        """What it has now; 0 where it waits."""
        if not self.running:
            return 0
        held = [slots for slots, size in self.of_slots.items() if size <= (self.record.size or 0)]
        return self.profile.fitting(max(held, default=0)) or self.profile.sizes[0]

    def as_core(self, deadline_s: float) -> Running:
        job = MalleableJob(self.record.id, self.record.submitted_at.timestamp(), self.work, deadline_s, self.profile)
        return Running(job, self.work, self.slots, stays=self.running)

    def fastest_s(self, now_s: float) -> float:
        """When it would have ended that has its fastest size from now on."""
        return now_s + self.work / max(self.profile.rates)

    def silent(self, now_s: float) -> bool:
        """Whether a malleable job has told no step though it has run for a while: what it has left is not known."""
        record = self.record
        if not self.running or record.speeds is not None or record.started_at is None:
            return False
        return now_s - record.started_at.timestamp() > SILENT_S


@dataclass(eq=False)
class Members:
    """``queued``: the jobs with deadlines that wait."""

    offer: Offer
    queued: Sequence[JobRecord]
    now_s: float
    parameters: Parameters

    def member(self, record: JobRecord, running: bool, pool: Pool, claim: int) -> Member | None:
        """None where the job takes no part: how long it takes is not known, or a task of it fits nowhere. ``claim``:
        the most slots that it may have."""
        if record.size is None:
            return _rigid(record, running, pool)
        speed = self.speeds[record.id]
        work = left_of(record, speed, self.now_s)
        if work is None or not speed.known:
            return None
        most, of_slots = self._most(record), dict[int, int]()
        for size in sizes_of(record):
            slots = pool.slots(record, size)
            if slots is not None and (not of_slots or (slots <= claim and size <= most)):
                of_slots[slots] = size
        if not of_slots:
            return None
        profile = SpeedProfile.of({slots: speed.rate(size) for slots, size in of_slots.items()}).rising
        return Member(record, running, max(work, LATE_S), profile, of_slots)

    @cached_property
    def speeds(self) -> Mapping[str, SpeedModel]:
        """Of the malleable jobs."""
        everybody = (*self.offer.records.values(), *self.queued)
        return SpeedModels().of([each for each in everybody if each.size is not None], self.offer.records.values())

    def _most(self, record: JobRecord) -> float:
        """The most workers that the quota of the job's tenant lets it have beside what its other jobs hold, but for
        those that are about to leave."""
        quota = self.parameters.tenant(record.tenant).quota
        if not quota:
            return math.inf
        held = sum(
            (amounts_of(cells) for name, cells in self.offer.held.items() if self._beside(name, record)),
            amounts_of({}),
        )
        capacity = capacity_of(self.offer.cluster)
        (task,) = asked_of(record)
        others = [each for each in record.tasks if each not in elastic_tasks(record, record.tasks)]
        most = math.inf
        for row, (resource, need) in enumerate(zip(AMOUNTS, (task.cpu, task.memory, task.gpus), strict=False)):
            if need and resource in quota:
                fixed = held[row] + sum((each.cpu, each.memory, each.gpus)[row] for each in others)
                most = min(most, (quota[resource] * capacity[row] - fixed) / need + LATE_S)
        return most

    def _beside(self, name: str, record: JobRecord) -> bool:
        other = self.offer.records.get(name)
        if other is None or other.state in LEAVING:
            return False
        return other.tenant == record.tenant and other.id != record.id


def without(members: Sequence[Member], names: Collection[str]) -> list[Member]:
    return [each for each in members if each.record.id not in names]


def sizes_of(record: JobRecord) -> Sequence[int]:
    """Of a malleable job, rising."""
    assert record.spec is not None
    assert record.spec.elastic is not None
    return record.spec.elastic.allowed


def due_of(record: JobRecord) -> float:
    """The job's deadline, in seconds; infinite where it has none."""
    return math.inf if record.deadline_at is None else record.deadline_at.timestamp()


def may_be_late(record: JobRecord) -> bool:
    return record.deadline is None or record.deadline.policy == "best-effort"


def _rigid(record: JobRecord, running: bool, pool: Pool) -> Member | None:
    work, slots = left_s(record), pool.slots(record, None)
    if work is None or slots is None:
        return None
    return Member(record, running, max(work, LATE_S), SpeedProfile((slots,), (1.0,)), {slots: len(record.tasks)})
