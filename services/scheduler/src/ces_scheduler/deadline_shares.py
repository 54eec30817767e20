"""What the deadlines of jobs ask for: which size each job needs now, who gets what is left, who cannot end in time.

Pure: the core's policy (:mod:`ces_core.malleable.steady`) decides, on the cluster as :mod:`ces_scheduler.slots`
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
from ces_core.malleable.model import Pieces
from ces_core.malleable.policy import Decision, Moment
from ces_core.malleable.steady import Steady
from ces_core.queue.parameters import Parameters
from ces_scheduler.cycle_input import LEAVING
from ces_scheduler.deadline_members import LATE_S, Member, Members, due_of, may_be_late, sizes_of, without
from ces_scheduler.offer import Floats, Offer
from ces_scheduler.slots import Ground, Pool, running_members

log = structlog.get_logger()
SLOT_S: Final = 1.0
"""Where sizes change within a plan, they do so at whole slots from now."""
START_S: Final = 2.0
"""What a job needs for its start."""
HAND: Final = 0.1
"""Of the time until its deadline: kept in hand for a malleable job when jobs are admitted, since its speed is an
estimate and resizes come one after the other. A job that has no more to spare must begin."""
_FROZEN = frozenset({JobState.PAUSED, JobState.SUSPENDED})


@dataclass(frozen=True)
class JobShare:
    """Of one job. ``least``: workers (of a rigid job: tasks) that it needs now to end in time; the smallest size where
    a job that runs needs no more, and 0 where one is to begin later. ``size``: with its part of what is left.
    ``end_s``: when it will have ended; ``kept``: whether that is in time. ``begin_s``: when one that waits is to begin;
    infinitely long ago where that is at once, or where it has no plan. ``pressing``: it must not begin any later."""

    least: int
    size: int
    end_s: float
    kept: bool = True
    begin_s: float = -math.inf
    pressing: bool = False


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

    @cached_property
    def pressing(self) -> frozenset[str]:
        """Waiting jobs that must not begin any later."""
        return frozenset(name for name, share in self.shares.items() if share.pressing)

    def most(self, job: str) -> float:
        """The size at which a malleable job may start at most. One without a share leaves what is free to those that
        are to begin later."""
        share = self.shares.get(job)
        if share is not None and math.isfinite(share.end_s):
            return share.size
        return 0.0 if self._room_is_planned else math.inf

    @cached_property
    def _room_is_planned(self) -> bool:
        """Whether any job is to begin later."""
        return any(not each.size and math.isfinite(each.begin_s) for each in self.shares.values())

    def begins_later(self, job: str, overdue: Collection[str] = ()) -> bool:
        """Whether the job waits, and must not begin yet. ``overdue``: jobs that have waited for others long enough, if
        they are late."""
        share = self.shares.get(job)
        if share is None or share.size or math.isinf(share.begin_s):
            return False
        return share.kept or job not in overdue


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
class _Question:
    offer: Offer
    queued: Sequence[JobRecord]
    now_s: float
    cost_s: float
    parameters: Parameters
    promised: Collection[str]

    def __post_init__(self) -> None:
        self.members = Members(self.offer, self.queued, self.now_s, self.parameters)

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
                found[record.id] = JobShare(size, size, end_s, end_s <= due_of(record))
        return found

    def _past(self, judged: Collection[str]) -> dict[str, JobShare]:
        """The other jobs whose deadline has passed: those that are paused, or do not say what they have left to do."""
        everybody = (*self.offer.records.values(), *self.queued)
        others = (record for record in everybody if record.deadline_at is not None and record.id not in judged)
        return {record.id: JobShare(0, 0, math.inf, kept=False) for record in others if due_of(record) < self.now_s}

    def _of_group(self, ground: Ground, group: Sequence[JobRecord], here: Collection[str]) -> Judgement:
        held = [ground.held(record) for record in group if record.id in here]
        pool = Pool.of(ground, group, held, self._leaving(ground))
        members, kept_free = list[Member](), 0
        refused, on_trust = dict[str, float](), dict[str, JobShare]()
        used = {record.id: pool.slots(record, record.size) or 0 for record in group if record.id in here}
        floors = {record.id: pool.slots(record, sizes_of(record)[0]) or 0 for record in group if record.id in here}
        capacity = max(pool.capacity, sum(floors.values()))
        for record in group:
            claim = capacity - sum(
                used[other.id] for other in group if other.id in here and other.priority > record.priority
            )
            member = self.members.member(record, record.id in here, pool, claim)
            if member is not None:
                members.append(member)
            elif record.id in here:
                kept_free += floors[record.id]
            elif must_be_admitted(record) and record.id not in self.promised:
                if record.size is not None and not self.members.speeds[record.id].known:
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
        inside = without(members, refused)
        decision = self._decision(inside, capacity, booked)
        shares = {each.record.id: self._share(each, decision) for each in inside}
        return Judgement(on_trust | shares, refused, until_s=decision.until_s)

    def _arrives(self, member: Member) -> bool:
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

    def _refused(
        self,
        members: Sequence[Member],
        arriving: Collection[str],
        capacity: int,
        booked: Pieces,
    ) -> dict[str, float]:
        """Who of the arriving cannot end in time beside those to whom it was promised; a deadline that may be missed is
        no promise."""
        if not arriving:
            return {}
        inside = without(members, arriving)
        due = self._kept_dues(inside, capacity, booked)
        due |= {each.record.id: math.inf for each in inside if may_be_late(each.record)}
        due = self._early(members, inside, due, capacity, booked)
        active = [each.as_core(due[each.record.id]) for each in members]
        moment = Moment(self.now_s, capacity, active, frozenset(arriving), booked=booked)
        decision = Steady(self.cost_s, SLOT_S, START_S)(moment)
        return {name: decision.ends[name] for name in decision.refused}

    def _early(
        self,
        members: Sequence[Member],
        inside: Sequence[Member],
        due: Mapping[str, float],
        capacity: int,
        booked: Pieces,
    ) -> dict[str, float]:
        """The deadlines with something in hand, but for jobs that could not be in time so even alone, or, of those
        inside, beside each other."""
        true = {each.record.id: due.get(each.record.id, each.due_s) for each in members}
        early = {each.record.id: self._with_hand(each, true[each.record.id]) for each in members}
        ends = self._asked(inside, early, capacity, booked).ends
        return early | {name: true[name] for name, end_s in ends.items() if end_s > early[name] + LATE_S}

    def _with_hand(self, member: Member, due_s: float) -> float:
        if member.record.size is None or math.isinf(due_s):
            return due_s
        early_s = due_s - HAND * max(0.0, due_s - self.now_s)
        return early_s if member.fastest_s(self.now_s) + START_S <= early_s else due_s

    def _decision(self, members: Sequence[Member], capacity: int, booked: Pieces) -> Decision:
        due = self._kept_dues(members, capacity, booked)
        return self._asked(members, due, capacity, booked)

    def _kept_dues(self, members: Sequence[Member], capacity: int, booked: Pieces) -> dict[str, float]:
        """The deadlines to plan by; none where one cannot be kept. Those that may be missed yield to those that were
        promised. Of those that are late half are given up at once, so that many take few turns."""
        due = {each.record.id: math.inf if each.silent(self.now_s) else each.due_s for each in members}
        for each in members:
            if each.fastest_s(self.now_s) > due[each.record.id]:
                due[each.record.id] = math.inf
        while True:
            ends = self._asked(members, due, capacity, booked).ends
            late = [each for each in members if ends[each.record.id] > due[each.record.id] + LATE_S]
            if not late:
                return due
            yielding = [each for each in members if may_be_late(each.record) and math.isfinite(due[each.record.id])]
            promised = sum(not may_be_late(each.record) for each in late)
            if yielding and promised:
                yielding.sort(key=lambda each: (each.due_s, each.record.id), reverse=True)
                due |= {each.record.id: math.inf for each in yielding[: _half(promised)]}
                continue
            late.sort(key=lambda each: (due[each.record.id], each.record.id))
            due |= {each.record.id: math.inf for each in late[: _half(len(late))]}

    def _asked(
        self,
        members: Sequence[Member],
        due: Mapping[str, float],
        capacity: int,
        booked: Pieces,
    ) -> Decision:
        active = [each.as_core(due[each.record.id]) for each in members]
        moment = Moment(self.now_s, capacity, active, booked=booked)
        return Steady(self.cost_s, SLOT_S, START_S, admission=False)(moment)

    def _share(self, member: Member, decision: Decision) -> JobShare:
        name = member.record.id
        slots, begin_s = (decision.least.get(name, 0), decision.sizes.get(name, 0)), -math.inf
        if name in decision.begins:
            begin_s, then = decision.begins[name]
            if begin_s <= self.now_s + SLOT_S:  # once another one has ended, which may be any moment
                slots, begin_s = (then, then), -math.inf
        least, size = (member.of_slots.get(each, 0) for each in slots)
        end_s = decision.ends[name]
        if member.running and member.record.size is not None:
            at_this_s = self.now_s + member.work / self.members.speeds[name].rate(member.record.size)
            if at_this_s <= member.due_s or member.record.size >= size:
                end_s = at_this_s
        kept, left_s = end_s <= member.due_s + LATE_S, member.due_s - self.now_s
        admitted = kept and not may_be_late(member.record)
        presses = bool(admitted and least and not member.running and member.due_s - end_s <= HAND * left_s)
        return JobShare(least, size, end_s, kept, begin_s, presses)


def _half(count: int) -> int:
    return max(1, count // 2)


def _end_s(record: JobRecord) -> float | None:
    """When a job that holds something says that it ends; None where it does not, or is frozen."""
    if record.expected_s is None or record.started_at is None or record.state in _FROZEN:
        return None
    return record.started_at.timestamp() + record.expected_s
