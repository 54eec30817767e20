"""Holds of this region for others: what whole jobs of other regions and parts of split ones have in common. Each is
held as an ordinary job with a committed plan, until its home commits it or its time is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import cast

from sqlalchemy import func, select

from ces_common.db.region_tables import GuestRow, PartRow
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.regions import HOLD_S
from ces_common.states import JOB_OVER, JobState
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change, job_row

PLACED = (JobState.PLANNED, JobState.PREPARING)  # as far as one comes that may not start yet
_KINDS: tuple[tuple[type[GuestRow] | type[PartRow], str], ...] = ((GuestRow, "held"), (PartRow, "its part was held"))


def due(tx: ReadTx, now: datetime) -> Sequence[tuple[JobRow, str]]:
    """What was held for its time and not committed, and why it ends."""
    found = []
    for kind, held in _KINDS:
        overdue = (~kind.committed, kind.hold_until <= now, JobRow.state.not_in(JOB_OVER))
        query = select(kind).join(JobRow, JobRow.id == kind.job).where(*overdue)
        for row in cast("Iterable[GuestRow | PartRow]", tx.session.scalars(query)):
            why = f"{held} for region {row.home} for {HOLD_S:g} s, which did not commit it"
            found.append((job_row(tx, row.job), why))
    return found


def end_holds(tx: WriteTx) -> int:
    """Release what is due; returns how many holds that were."""
    ended = due(tx, tx.now)
    for row, why in ended:
        end(tx, row, why)
    return len(ended)


def next_end(tx: ReadTx) -> datetime | None:
    """When the first hold ends that nobody has committed yet."""
    ends = (
        tx.session.scalar(
            select(func.min(kind.hold_until))
            .join(JobRow, JobRow.id == kind.job)
            .where(~kind.committed, JobRow.state.not_in(JOB_OVER))
        )
        for kind, _ in _KINDS
    )
    return min(filter(None, ends), default=None)


def end(tx: WriteTx, row: JobRow, reason: str) -> None:
    """Nothing, where it is over."""
    change(tx, row, lambda course: lifecycle.cancel(course, reason))
