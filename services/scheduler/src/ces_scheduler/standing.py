"""How waiting jobs stand, in the words of the wire, and when there is something new to say of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ces_common.messages.events import Reason, Score, Standing
from ces_core.multi.explaining import Standing as CoreStanding
from ces_core.multi.jobs import WaitingJob, whose
from ces_core.multi.parameters import Parameters
from ces_scheduler.translate import reason_of

MOVED_S, MOVED = 60.0, 0.1
"""An estimated start that moves by no more than this, or by so large a part of the time until then, is no news."""
OTHER = 0.1
"""Nor is another amount that is available, up to such a part of it."""

CALM_S = 30.0
"""Within this nobody is told of the same job again, but for promises and what holds for ever."""
HOLDERS = 20
"""So many of the jobs that another waits for are named."""


def standings_of(
    standings: Iterable[CoreStanding], waiting: Iterable[WaitingJob], now_s: float, parameters: Parameters
) -> list[Standing]:
    """``waiting``: the jobs, some of which these are; ``now_s``: when the cycle was held."""
    submitted_s = {job.name: job.submitted_s for job in waiting}
    return [
        Standing(
            job=each.job,
            position=each.position,
            score=Score(
                fit=each.score.fit,
                priority=each.score.priority,
                waiting=each.score.waiting,
                share=each.score.share,
                total=each.score.total,
                scarce=each.score.scarce,
            ),
            reason=None if each.reason is None else reason_of(each.reason),
            overdue=now_s - submitted_s[each.job] >= parameters.overdue_s,
            reserved=each.reserved,
            start_at=_time(each.start_s, now_s),
            held_by=_holders(each.held_by, each.job),
        )
        for each in standings
    ]


def _holders(names: Iterable[str], job: str) -> list[str]:
    return [holder for holder in dict.fromkeys(whose(name) for name in names) if holder != job][:HOLDERS]


def _time(start_s: float | None, now_s: float) -> datetime | None:
    """None as well for what should have been possible by now: then nobody knows when it will be."""
    return None if start_s is None or start_s <= now_s + 1e-3 else datetime.fromtimestamp(start_s, UTC)


@dataclass(frozen=True)
class Told:
    """What a person was told of a job last."""

    attempt: int
    reason: Reason
    at: datetime
    reserved: bool = False
    held_by: frozenset[str] = frozenset()
    start_at: datetime | None = None

    @staticmethod
    def of(attempt: int, reason: Reason, standing: Standing | None, at: datetime) -> Told:
        if standing is None:
            return Told(attempt, reason, at)
        return Told(attempt, reason, at, standing.reserved, frozenset(standing.held_by), standing.start_at)


def is_news(now: Told, last: Told | None) -> bool:
    """Whether somebody who was told the last has to be told this: promises and what holds for ever at once, the rest
    not too often, since with every job that ends all others may wait for another."""
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
    """The same obstacle is no news where it has moved to another node, nor where a little more or less is free."""
    if now.available is None or last.available is None:
        return now != last
    same = ("code", "resource", "needed", "forever")
    if any(getattr(now, name) != getattr(last, name) for name in same):
        return True
    return abs(now.available - last.available) > OTHER * max(now.available, last.available)


def _moved(now: Told, last: Told) -> bool:
    if now.start_at is None or last.start_at is None:
        return now.start_at != last.start_at
    moved = abs((now.start_at - last.start_at).total_seconds())
    return moved > max(MOVED_S, MOVED * (last.start_at - last.at).total_seconds())
