"""What the deadlines of jobs ask for: which size each job needs now, who gets what is left, who cannot end in time.

Pure: the core's policy (:mod:`ces_core.malleable.elasticflow`) decides, on the cluster as :mod:`ces_scheduler.slots`
counts it. Malleable jobs that run keep their smallest size at least. Rigid ones hold what they hold until they end as
they said; one that does not say never gives anything back. A job has no claim to what more urgent ones have. A deadline
that cannot be kept any more gives no claim at all. A job of whose speed nobody knows anything is admitted on trust, and
has no claim before it was measured.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import structlog

from ces_common.messages.records import JobRecord
from ces_common.states import JOB_OVER, JobState
from ces_core.malleable.elasticflow import ElasticFlow
from ces_core.malleable.model import MalleableJob, Pieces, Running, SpeedProfile
from ces_core.malleable.policy import Decision, Moment
from ces_core.malleable.speed import SpeedModel
from ces_core.queue.parameters import AMOUNTS, Parameters
from ces_core.queue.shares import amounts_of, capacity_of
from ces_scheduler.cycle_input import LEAVING, left_s
from ces_scheduler.job_speeds import SpeedModels, left_of
from ces_scheduler.offer import Floats, Offer
from ces_scheduler.slots import Ground, Pool, asked_of, elastic_tasks, running_members

log = structlog.get_logger()
SLOT_S: Final = 10.0
"""Plans change at whole slots from now."""
SILENT_S: Final = 300.0  # after which a job that tells no steps has no claim
LATE_S: Final = 1e-3
_FROZEN = frozenset({JobState.PAUSED, JobState.SUSPENDED})


@dataclass(frozen=True)
class JobShare:
    """Of one job. ``least``: workers (of a rigid job: tasks) that it needs now to end in time; the smallest size where
    a job that runs needs no more, and 0 where one may still wait. ``size``: with its part of what is left. ``end_s``:
    when it will have ended; ``kept``: whether that is in time."""

    least: int
    size: int
    end_s: float
    kept: bool = True


@dataclass(frozen=True)
class Judgement:
    """``shares``: of jobs that run, and of admitted ones that wait. ``refused``: jobs that cannot end in time beside
    the admitted ones, each with its earliest end, infinite where nobody knows; ``doubtful``: those of them that could
    if nodes out of reach, or reclaimed by their owners, were back. ``until_s``: when to ask again, though nothing else
    happens."""

    shares: Mapping[str, JobShare] = field(default_factory=dict)
    refused: Mapping[str, float] = field(default_factory=dict)
    doubtful: frozenset[str] = frozenset()
    until_s: float = math.inf


def judge(
    offer: Offer,
    waiting: Iterable[JobRecord],
    now_s: float,
    cost_s: float,
    parameters: Parameters,
    promised: Collection[str] = (),
) -> Judgement:
    """The judgement on all jobs with deadlines, and on what malleable ones without may have beside them. ``cost_s``:
    what a resize takes, which is kept in hand; ``promised``: waiting jobs that are admitted, beside those of whom the
    records say so."""
    by_age = sorted(waiting, key=lambda record: (record.submitted_at, record.id))
    queued = [record for record in by_age if record.deadline_at is not None]
    if not queued and all(record.deadline_at is None for record in offer.records.values()):
        return Judgement()
    asked = _Question(offer, queued, now_s, cost_s, parameters, promised)
    found = asked.answer(Ground(offer))
    if found.refused and any(node.state != "ready" or node.reclaimed for node in offer.nodes.values()):
        back = asked.answer(Ground(offer, with_absent=True))
        return Judgement(found.shares, found.refused, frozenset(found.refused.keys() - back.refused), found.until_s)
    return found


def must_be_admitted(record: JobRecord) -> bool:
    """Whether the job waits for its first plan, may not be late, and was not promised to be in time."""
    policy = None if record.deadline is None else record.deadline.policy
    waits = record.state is JobState.QUEUED and record.attempt == 1
    return policy == "refuse" and waits and not record.admitted


@dataclass(eq=False)
class _Member:
    """A job that the policy decides on. ``of_slots``: slots -> size."""

    record: JobRecord
    running: bool
    work: float
    profile: SpeedProfile
    of_slots: Mapping[int, int]

    @property
    def due_s(self) -> float:
        return _due_s(self.record)

    def as_core(self, deadline_s: float) -> Running:
        job = MalleableJob(self.record.id, self.record.submitted_at.timestamp(), self.work, deadline_s, self.profile)
        return Running(job, self.work, stays=self.running)


@dataclass(eq=False)
class _Question:
    offer: Offer
    queued: Sequence[JobRecord]
    now_s: float
    cost_s: float
    parameters: Parameters
    promised: Collection[str]

    def answer(self, ground: Ground) -> Judgement:
        shares: dict[str, JobShare] = {}
        refused: dict[str, float] = {}
        until_s = math.inf
        here = list(running_members(self.offer))
        groups: dict[int, list[JobRecord]] = {}
        for record in (*here, *self.queued, *self._coming_back()):
            groups.setdefault(ground.scarce(record), []).append(record)
        for _, group in sorted(groups.items()):
            if any(record.deadline_at is not None for record in group):
                found = self._sound(ground, group, {record.id for record in here})
                shares |= found.shares
                refused |= found.refused
                until_s = min(until_s, found.until_s)
        shares |= self._rigid()
        return Judgement(self._past(shares.keys() | refused) | shares, refused, until_s=until_s)

    def _coming_back(self) -> list[JobRecord]:
        """Jobs with deadlines that will wait again once they have given back what they hold."""
        records = (self.offer.records[name] for name in sorted(self.offer.records))
        again = (each for each in records if each.state in LEAVING - JOB_OVER and not must_be_admitted(each))
        return [each for each in again if each.deadline_at is not None]

    def _sound(self, ground: Ground, group: Sequence[JobRecord], here: Collection[str]) -> Judgement:
        """A job that cannot be reckoned with has no share, and keeps none from the others."""
        try:
            return self._of_group(ground, group, here)
        except Exception:
            if len(group) == 1:
                log.exception("a job's deadline cannot be judged", job=group[0].id)
                return Judgement()
            log.exception("deadlines cannot be judged together: each is tried alone", jobs=len(group))
        able = [record for record in group if self._bears(ground, record, here)]
        return self._sound(ground, able, here) if 0 < len(able) < len(group) else Judgement()

    def _bears(self, ground: Ground, record: JobRecord, here: Collection[str]) -> bool:
        try:
            self._of_group(ground, [record], here)
        except Exception:
            log.exception("a job's deadline cannot be judged", job=record.id)
            return False
        return True

    def _rigid(self) -> dict[str, JobShare]:
        """When rigid jobs that run will have ended, by what they say."""
        found = {}
        for record in self.offer.records.values():
            end_s = _end_s(record)
            if record.size is None and record.deadline_at is not None and end_s is not None:
                size, end_s = len(record.tasks), max(end_s, self.now_s)
                found[record.id] = JobShare(size, size, end_s, end_s <= _due_s(record))
        return found

    def _past(self, judged: Collection[str]) -> dict[str, JobShare]:
        """The other jobs whose deadline has passed: those that are paused, or do not say what they have left to do."""
        everybody = (*self.offer.records.values(), *self.queued)
        others = (record for record in everybody if record.deadline_at is not None and record.id not in judged)
        return {record.id: JobShare(0, 0, math.inf, kept=False) for record in others if _due_s(record) < self.now_s}

    def _of_group(self, ground: Ground, group: Sequence[JobRecord], here: Collection[str]) -> Judgement:
        held = [ground.held(record) for record in group if record.id in here]
        pool = Pool.of(ground, group, held, self._leaving(ground))
        members, kept_free = list[_Member](), 0
        refused, on_trust = dict[str, float](), dict[str, JobShare]()
        used = {record.id: pool.slots(record, record.size) or 0 for record in group if record.id in here}
        floors = {record.id: pool.slots(record, _smallest(record)) or 0 for record in group if record.id in here}
        capacity = max(pool.capacity, sum(floors.values()))
        for record in group:
            claim = capacity - sum(
                used[other.id] for other in group if other.id in here and other.priority > record.priority
            )
            member = self._member(record, record.id in here, pool, claim)
            if member is not None:
                members.append(member)
            elif record.id in here:
                kept_free += floors[record.id]
            elif must_be_admitted(record) and record.id not in self.promised:
                if record.size is not None and not self._speed(record).known:
                    on_trust[record.id] = JobShare(0, 0, math.inf)
                else:
                    refused[record.id] = math.inf
        capacity -= kept_free
        hopeless = [each for each in members if each.profile.sizes[0] > capacity]
        members = [each for each in members if each.profile.sizes[0] <= capacity]
        arriving = {each.record.id for each in members if self._arrives(each)}
        refused |= {each.record.id: math.inf for each in hopeless if self._arrives(each)}
        booked = tuple((self.now_s, end, slots) for end, slots in pool.booked)
        refused |= self._refused(members, arriving, capacity, booked)
        inside = [each for each in members if each.record.id not in refused]
        decision = self._decision(inside, capacity, booked)
        shares = {each.record.id: self._share(each, decision) for each in inside}
        return Judgement(on_trust | shares, refused, until_s=decision.until_s)

    def _arrives(self, member: _Member) -> bool:
        return must_be_admitted(member.record) and member.record.id not in self.promised

    def _leaving(self, ground: Ground) -> list[tuple[float, Floats]]:
        """When rigid jobs end, and others that are about to leave, and what they hold until then. What may end any
        moment is counted as gone with the next slot: nobody is refused for good because of it."""
        found = []
        for record in self.offer.records.values():
            end_s = self.now_s if record.state in LEAVING else _end_s(record) if record.size is None else None
            if end_s is not None:
                found.append((end_s if end_s > self.now_s else self.now_s + SLOT_S, ground.held(record)))
        return found

    def _member(self, record: JobRecord, running: bool, pool: Pool, claim: int) -> _Member | None:
        """None where the job takes no part: how long it takes is not known, or a task of it fits nowhere."""
        work = left_s(record) if record.size is None else left_of(record, self._speed(record), self.now_s)
        if work is None:
            return None
        if record.size is None:
            slots = pool.slots(record, None)
            if slots is None:
                return None
            return _Member(
                record, running, max(work, LATE_S), SpeedProfile((slots,), (1.0,)), {slots: len(record.tasks)}
            )
        speed, most = self._speed(record), self._most(record)
        if not speed.known:
            return None
        of_slots: dict[int, int] = {}
        for size in _sizes(record):
            slots = pool.slots(record, size)
            if slots is not None and (not of_slots or (slots <= claim and size <= most)):
                of_slots[slots] = size
        if not of_slots:
            return None
        profile = SpeedProfile.of({slots: speed.rate(size) for slots, size in of_slots.items()}).rising
        return _Member(record, running, max(work, LATE_S), profile, of_slots)

    def _speed(self, record: JobRecord) -> SpeedModel:
        return self._speeds[record.id]

    @cached_property
    def _speeds(self) -> Mapping[str, SpeedModel]:
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
        for row, (resource, need) in enumerate(zip(AMOUNTS, (task.cpu, task.memory, task.gpu), strict=False)):
            if need and resource in quota:
                fixed = held[row] + sum((each.cpu, each.memory, each.gpu)[row] for each in others)
                most = min(most, (quota[resource] * capacity[row] - fixed) / need + LATE_S)
        return most

    def _beside(self, name: str, record: JobRecord) -> bool:
        other = self.offer.records.get(name)
        if other is None or other.state in LEAVING:
            return False
        return other.tenant == record.tenant and other.id != record.id

    def _refused(
        self,
        members: Sequence[_Member],
        arriving: Collection[str],
        capacity: int,
        booked: Pieces,
    ) -> dict[str, float]:
        """Who of the arriving cannot end in time beside those to whom it was promised; a deadline that may be missed is
        no promise."""
        if not arriving:
            return {}
        inside = [each for each in members if each.record.id not in arriving]
        due = self._kept_dues(inside, capacity, booked)
        due |= {each.record.id: math.inf for each in inside if _may_be_late(each.record)}
        active = [each.as_core(due.get(each.record.id, self._aim(each))) for each in members]
        moment = Moment(self.now_s, capacity, active, frozenset(arriving), booked=booked)
        decision = ElasticFlow(SLOT_S)(moment)
        return {name: decision.ends[name] for name in decision.refused}

    def _decision(self, members: Sequence[_Member], capacity: int, booked: Pieces) -> Decision:
        due = self._kept_dues(members, capacity, booked)
        return self._asked(members, due, capacity, booked)

    def _kept_dues(self, members: Sequence[_Member], capacity: int, booked: Pieces) -> dict[str, float]:
        """The deadlines to plan by; none where one cannot be kept. Those that may be missed yield to those that were
        promised. Of those that are late half are given up at once, so that many take few turns."""
        due = {each.record.id: math.inf if self._silent(each) else self._aim(each) for each in members}
        for each in members:
            if self._fastest_s(each) > due[each.record.id]:
                due[each.record.id] = math.inf
        while True:
            ends = self._asked(members, due, capacity, booked).ends
            late = [each for each in members if ends[each.record.id] > due[each.record.id] + LATE_S]
            if not late:
                return due
            yielding = [each for each in members if _may_be_late(each.record) and math.isfinite(due[each.record.id])]
            promised = sum(not _may_be_late(each.record) for each in late)
            if yielding and promised:
                yielding.sort(key=lambda each: (each.due_s, each.record.id), reverse=True)
                due |= {each.record.id: math.inf for each in yielding[: _half(promised)]}
                continue
            late.sort(key=lambda each: (due[each.record.id], each.record.id))
            for each in late[: _half(len(late))]:
                due[each.record.id] = each.due_s if due[each.record.id] < each.due_s else math.inf

    def _aim(self, member: _Member) -> float:
        """The deadline to plan a job by: with a resize in hand, but for a rigid job, which has none, and for one that
        could not be in time so even alone."""
        early = member.due_s if member.record.size is None else member.due_s - self.cost_s
        return early if self._fastest_s(member) <= early else member.due_s

    def _fastest_s(self, member: _Member) -> float:
        """When it would have ended that has its fastest size from now on."""
        return self.now_s + member.work / max(member.profile.rates)

    def _silent(self, member: _Member) -> bool:
        """Whether a malleable job has told no step though it has run for a while: what it has left is not known."""
        record = member.record
        if not member.running or record.speeds is not None or record.started_at is None:
            return False
        return self.now_s - record.started_at.timestamp() > SILENT_S

    def _asked(
        self,
        members: Sequence[_Member],
        due: Mapping[str, float],
        capacity: int,
        booked: Pieces,
    ) -> Decision:
        active = [each.as_core(due[each.record.id]) for each in members]
        return ElasticFlow(SLOT_S, admission=False)(Moment(self.now_s, capacity, active, booked=booked))

    def _share(self, member: _Member, decision: Decision) -> JobShare:
        name = member.record.id
        least, size = (member.of_slots.get(each.get(name, 0), 0) for each in (decision.least, decision.sizes))
        end_s = decision.ends[name]
        if member.running and member.record.size is not None:
            at_this_s = self.now_s + member.work / self._speed(member.record).rate(member.record.size)
            if at_this_s <= member.due_s or member.record.size >= size:
                end_s = at_this_s
        return JobShare(least, size, end_s, end_s <= member.due_s + LATE_S)


def _half(count: int) -> int:
    return max(1, count // 2)


def _end_s(record: JobRecord) -> float | None:
    """When a job that holds something says that it ends; None where it does not, or is frozen."""
    if record.expected_s is None or record.started_at is None or record.state in _FROZEN:
        return None
    return record.started_at.timestamp() + record.expected_s


def _due_s(record: JobRecord) -> float:
    return math.inf if record.deadline_at is None else record.deadline_at.timestamp()


def _sizes(record: JobRecord) -> Sequence[int]:
    assert record.spec is not None
    assert record.spec.elastic is not None
    return record.spec.elastic.allowed


def _smallest(record: JobRecord) -> int:
    return _sizes(record)[0]


def _may_be_late(record: JobRecord) -> bool:
    return record.deadline is None or record.deadline.policy == "best-effort"
