"""Retention: old history is dropped, oldest first and a little at a time, so that no commit waits long for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, delete, func, select

from ces_common.db.tables import EventRow, InboxRow, JobRow, JoinTokenRow
from ces_common.db.uow import ReadTx, UnitOfWork
from ces_manager.timeouts import Timeouts


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """History older than these is dropped."""

    jobs: datetime
    messages: datetime


def cutoffs(now: datetime, timeouts: Timeouts) -> Cutoffs:
    return Cutoffs(now - timedelta(seconds=timeouts.keep_jobs_s), now - timedelta(seconds=timeouts.keep_messages_s))


def has_aged(tx: ReadTx, cut: Cutoffs) -> bool:
    """Whether there is anything to drop: an idle look locks nothing."""
    queries = (_jobs(cut), *(query for _, _, query in _simple(cut)))
    return any(tx.session.execute(query.limit(1)).first() is not None for query in queries)


def prune(uow: UnitOfWork, cut: Cutoffs, timeouts: Timeouts, now: datetime) -> int:
    """Drop at most ``timeouts.prune_jobs`` jobs and ``timeouts.prune_rows`` rows of each other kind; returns how many.
    Each kind has a transaction of its own; the version lock is held only to move the horizon."""
    dropped = _prune_jobs(uow, cut, timeouts.prune_jobs, now)
    for table, key, query in _simple(cut):
        with uow.bare_write() as session:
            keys = session.scalars(query.order_by(key).limit(timeouts.prune_rows)).all()
            if keys:
                session.execute(delete(table).where(key.in_(keys)), execution_options={"synchronize_session": False})
            dropped += len(keys)
    return dropped


def _prune_jobs(uow: UnitOfWork, cut: Cutoffs, limit: int, now: datetime) -> int:
    """Settled jobs; what they were given goes with them."""
    with uow.read() as tx:
        ids = list(tx.session.scalars(_jobs(cut).order_by(JobRow.finished_at).limit(limit)))
        if not ids:
            return 0
        newest = tx.session.scalar(select(func.max(JobRow.version)).where(JobRow.id.in_(ids))) or 0
        behind = tx.cluster().horizon < newest
    if behind:
        with uow.write(
            now
        ) as writing:  # before they go: a reader that has not heard of their end must read everything again
            writing.cluster().horizon = max(writing.cluster().horizon, newest)
    with uow.bare_write() as session:
        session.execute(delete(JobRow).where(JobRow.id.in_(ids)), execution_options={"synchronize_session": False})
    return len(ids)


def _jobs(cut: Cutoffs) -> Select[Any]:
    return select(JobRow.id).where(JobRow.finished_at < cut.jobs, ~JobRow.live)


def _simple(cut: Cutoffs) -> list[tuple[Any, Any, Select[Any]]]:
    """Table, key and the keys of what is old, of each kind that stands alone."""
    return [
        (
            EventRow,
            EventRow.sequence,
            select(EventRow.sequence).where(EventRow.time < cut.messages, EventRow.published),
        ),
        (InboxRow, InboxRow.id, select(InboxRow.id).where(InboxRow.consumed_at < cut.messages)),
        (JoinTokenRow, JoinTokenRow.hash, select(JoinTokenRow.hash).where(JoinTokenRow.expires_at < cut.messages)),
    ]
