"""Looks after jobs with deadlines: admits or refuses those that have come, and tells the manager when each will end.

A job is refused only where it was found impossible for ``CONFIRM_S`` on end, from states read in between, with all
nodes counted that are out of reach or reclaimed. Until it is admitted it waits outside the queue.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from prometheus_client import Counter

from ces_common.bus.port import Bus
from ces_common.messages.events import DeadlineJudged, Reason, new_event
from ces_common.messages.records import JobRecord
from ces_common.state_view import StateView
from ces_core.queue.parameters import Parameters
from ces_scheduler.deadline_shares import JobShare, Judgement, judge, must_be_admitted
from ces_scheduler.followed_jobs import FollowedJobs
from ces_scheduler.offer import Offer
from ces_scheduler.proposals import Clock
from ces_scheduler.sizing import in_hand_s

log = structlog.get_logger()
CONFIRM_S: Final = 10.0
LOOK_S: Final = 10.0
"""Jobs make progress, and time passes, though nothing happens."""
MOVED_S, MOVED = 60.0, 0.1
"""A change of the expected end by no more than this, or this share of the time until then, is not told."""
REST: Final = 3.0
"""For this many times as long as a judgement has taken there is no other, but for a job that is new."""
REFUSED = Counter("ces_deadlines_refused_total", "Jobs refused because they cannot end in time")
CODE = "deadline"
LATER: Final = Reason(code=CODE, text="it is to begin later, in time for its deadline: until then others need the room")
LAST: Final = Reason(code=CODE, text="it cannot be in time: those that can have the room first")


@dataclass(frozen=True)
class _Told:
    attempt: int
    kept: bool
    end_at: datetime | None
    at: datetime


class Deadlines:
    """``now``: the time of day."""

    def __init__(self, bus: Bus, source: str, clock: Clock, now: Callable[[], datetime]) -> None:
        self._bus, self._source, self._clock, self._now = bus, source, clock, now
        self.judgement = Judgement()
        self._due_jobs = FollowedJobs(lambda job: job.deadline_at is not None)
        self._promised: set[str] = set()  # admitted, which the state may not say yet
        self._doubted: dict[str, float] = {}  # since when a job is found to be impossible
        self._gone: set[str] = set()  # refused, until they have left the queue
        self._told: dict[str, _Told] = {}
        self._looked: tuple[Offer, list[tuple[str, int]]] | None = None
        self._due = -math.inf
        self._later = frozenset[str]()  # waiting jobs that are not to begin yet
        self._judged: set[str] = set()  # the waiting jobs, in the last judgement
        self._rests_until = -math.inf

    @property
    def held_back(self) -> frozenset[str]:
        """Waiting jobs that are not admitted, or are to begin later, as of the last look."""
        return self.not_admitted | self._later

    @property
    def not_admitted(self) -> frozenset[str]:
        return frozenset(self._doubted) | frozenset(self._gone)

    async def look(
        self, view: StateView, offer: Offer, queued: Mapping[str, JobRecord], parameters: Parameters, version: int
    ) -> float:
        """Judges jobs again where the judgement may have changed; returns after how many seconds to look again unasked.
        Costs next to nothing where no job has a deadline. Raises BusError."""
        now, due = self._clock(), self._due_jobs.look(view)
        waiting = {name: queued[name] for name in sorted(due & queued.keys())}
        self._forget(offer, waiting)
        if not due:
            self.judgement, self._doubted, self._later = Judgement(), {}, frozenset()
            return math.inf
        asked = [record for record in waiting.values() if record.id not in self._gone]
        seen = [(record.id, record.version) for record in asked]
        if self._looked is not None and self._looked[0] is offer and self._looked[1] == seen and now < self._due:
            return self._due - now
        if now < self._rests_until and self._judged >= {record.id for record in asked}:
            return self._rests_until - now
        at = self._now()
        cost_s, promised = in_hand_s(offer.records.values()), frozenset(self._promised)
        question = (offer, asked, at.timestamp(), cost_s, parameters, promised)
        self.judgement = found = await asyncio.to_thread(judge, *question)
        self._judged = {record.id for record in asked}
        overdue = {each.id for each in asked if (at - each.submitted_at).total_seconds() >= parameters.overdue_s}
        self._later = frozenset(each.id for each in asked if found.begins_later(each.id, overdue))
        self._rests_until = self._clock() + REST * (self._clock() - now)
        self._doubted = {name: self._doubted.get(name, now) for name in found.refused}
        concerned = found.shares.keys() | found.refused
        records = {each.id: each for each in (*offer.records.values(), *asked) if each.id in concerned}
        await self._refuse(records, found, now, version)
        for name, share in found.shares.items():
            if records[name].deadline_at is not None:
                await self._tell(records[name], share, at, version)
        confirmed = [since + CONFIRM_S - now for since in self._doubted.values()]
        rest_s = LOOK_S if found.shares or found.refused else math.inf
        self._looked = (offer, seen)
        self._due = now + max(min([rest_s, found.until_s - at.timestamp(), *confirmed]), 1.0)
        return self._due - now

    def forget(self) -> None:
        """The broker may have lost what was told."""
        self._told.clear()
        self._gone.clear()
        self._looked = None

    def reasons(self) -> Iterable[tuple[str, Reason]]:
        """Why the jobs that are held back wait."""
        for name in sorted(self._later):
            yield name, LATER if self.judgement.shares[name].kept else LAST
        for name in self._doubted:
            yield name, refusal(self.judgement.refused[name], name in self.judgement.doubtful)

    def _forget(self, offer: Offer, waiting: Mapping[str, JobRecord]) -> None:
        open_still = {name for name, record in waiting.items() if must_be_admitted(record)}
        self._promised &= open_still
        self._gone &= open_still  # another scheduler may have admitted them
        self._told = {name: told for name, told in self._told.items() if name in waiting or name in offer.records}

    async def _refuse(self, records: Mapping[str, JobRecord], found: Judgement, now: float, version: int) -> None:
        for name, end_s in found.refused.items():
            if name in found.doubtful or now - self._doubted[name] < CONFIRM_S:
                continue
            reason = refusal(end_s)
            await self._publish(records[name], False, time_of(end_s), version, reason)
            del self._doubted[name]
            self._gone.add(name)
            REFUSED.inc()
            log.info("a job cannot end in time", job=name, reason=reason.text)

    async def _tell(self, record: JobRecord, share: JobShare, at: datetime, version: int) -> None:
        arrives = must_be_admitted(record) and record.id not in self._promised
        told = _Told(record.attempt, share.kept or arrives, time_of(share.end_s), at)
        if not arrives and not _is_news(told, self._told.get(record.id)):
            return
        await self._publish(record, told.kept, told.end_at, version)
        self._told[record.id] = told
        if arrives:
            self._promised.add(record.id)

    async def _publish(
        self, record: JobRecord, kept: bool, end_at: datetime | None, version: int, reason: Reason | None = None
    ) -> None:
        judged = DeadlineJudged(
            job=record.id, attempt=record.attempt, version=version, kept=kept, end_at=end_at, refusal=reason
        )
        event = new_event(self._source, "deadline", "judged", record.id, judged, datetime.now(UTC))
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)


def refusal(end_s: float, doubtful: bool = False) -> Reason:
    """Why a job is not admitted. ``end_s``: its earliest end; ``doubtful``: it could be in time with nodes that are out
    of reach, or reclaimed."""
    earliest = time_of(end_s)
    text = "it cannot end in time beside the jobs that are admitted: "
    if earliest is None:
        text += "no end can be named, since there is no room for it until jobs end that do not say when"
    else:
        text += f"its earliest end is {earliest.strftime('%Y-%m-%dT%H:%M:%SZ')}"
    if doubtful:
        text += ", unless nodes come back that are out of reach or reclaimed"
    return Reason(code=CODE, text=text)


def time_of(end_s: float) -> datetime | None:
    """None for what no calendar has."""
    try:
        return datetime.fromtimestamp(math.ceil(end_s), UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _is_news(now: _Told, last: _Told | None) -> bool:
    if last is None or (now.attempt, now.kept) != (last.attempt, last.kept):
        return True
    if now.end_at is None or last.end_at is None:
        return now.end_at != last.end_at
    moved = abs((now.end_at - last.end_at).total_seconds())
    return moved > max(MOVED_S, MOVED * (last.end_at - last.at).total_seconds())
