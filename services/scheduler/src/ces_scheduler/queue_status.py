"""The queue status of waiting jobs as messages, and when a change of it is worth reporting. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ces_common.messages.events import QueueStatus, Reason, Score, TooFewNodes
from ces_core.queue.jobs import WaitingJob, whose
from ces_core.queue.parameters import Parameters
from ces_core.queue.status import QueueStatus as CoreQueueStatus
from ces_scheduler.job_problem import reason_of

MOVED_S, MOVED = 60.0, 0.1
"""A change of the expected start by no more than this, or this share of the time until then, is not reported."""
OTHER = 0.1
"""Nor is a change of the available amount by no more than this share of it."""

CALM_S = 30.0
"""A job is reported at most once in this time, except for reservations and permanent reasons."""
HOLDERS = 20
"""At most this many of the jobs that another waits for are named."""


def queue_statuses(
    statuses: Iterable[CoreQueueStatus], waiting: Iterable[WaitingJob], now_s: float, parameters: Parameters
) -> list[QueueStatus]:
    """The core's queue, in order, as messages. ``waiting``: at least the jobs in it; ``now_s``: when the cycle was
    held."""
    submitted_s = {job.name: job.submitted_s for job in waiting}
    return [
        QueueStatus(
            job=each.job,
            position=each.position,
            score=Score.model_validate(each.score, from_attributes=True),
            reason=None if each.reason is None else reason_of(each.reason),
            overdue=now_s - submitted_s[each.job] >= parameters.overdue_s,
            reserved=each.reserved,
            start_at=_time(each.start_s, now_s),
            held_by=_holders(each.held_by, each.job),
        )
        for each in statuses
    ]


def _holders(names: Iterable[str], job: str) -> list[str]:
    return [holder for holder in dict.fromkeys(whose(name) for name in names) if holder != job][:HOLDERS]


def _time(start_s: float | None, now_s: float) -> datetime | None:
    """None also for a start that should have been possible by now: then nobody knows when it will be."""
    return None if start_s is None or start_s <= now_s + 1e-3 else datetime.fromtimestamp(start_s, UTC)


@dataclass(frozen=True)
class LastReport:
    """What was last reported of a job."""

    attempt: int
    reason: Reason
    at: datetime
    reserved: bool = False
    held_by: frozenset[str] = frozenset()
    start_at: datetime | None = None

    @staticmethod
    def of(attempt: int, reason: Reason, queue_status: QueueStatus | None, at: datetime) -> LastReport:
        if queue_status is None:
            return LastReport(attempt, reason, at)
        return LastReport(
            attempt, reason, at, queue_status.reserved, frozenset(queue_status.held_by), queue_status.start_at
        )


def is_news(now: LastReport, last: LastReport | None) -> bool:
    """Whether ``now`` is worth reporting after ``last``. Reservations and permanent reasons are at once; the rest not
    too often, since whenever a job ends all others may wait for another one."""
    if last is None or (now.attempt, now.reserved, now.reason.forever) != (
        last.attempt,
        last.reserved,
        last.reason.forever,
    ):
        return True
    if (now.reserved and _moved(now, last)) or (now.reason.forever and now.reason != last.reason):
        return True
    if (now.at - last.at).total_seconds() < CALM_S:
        return False
    return now.held_by != last.held_by or _other_reason(now.reason, last.reason) or _moved(now, last)


def _other_reason(now: Reason, last: Reason) -> bool:
    """The same obstacle on another node, or with a little more or less free, is the same reason."""
    same = ("code", "resource", "needed", "forever")
    if any(getattr(now, name) != getattr(last, name) for name in same) or _other_nodes(now.nodes, last.nodes):
        return True
    if now.available is None or last.available is None:
        return now.nodes is None and now != last
    return _differ(now.available, last.available)


def _other_nodes(now: TooFewNodes | None, last: TooFewNodes | None) -> bool:
    if now is None or last is None:
        return now is not last
    return (now.each, now.needed) != (last.each, last.needed) or _differ(now.available, last.available)


def _differ(now: float, last: float) -> bool:
    return abs(now - last) > OTHER * max(now, last)


def _moved(now: LastReport, last: LastReport) -> bool:
    if now.start_at is None or last.start_at is None:
        return now.start_at != last.start_at
    moved = abs((now.start_at - last.start_at).total_seconds())
    return moved > max(MOVED_S, MOVED * (last.start_at - last.at).total_seconds())
