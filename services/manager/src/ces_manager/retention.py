"""Retention: old history is dropped, oldest first and a little at a time, so that no commit waits long for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, delete, func, insert, or_, select
from sqlalchemy.orm import aliased

from ces_common.db.access_tables import ApplicantRow, JoinTokenRow, SessionRow
from ces_common.db.audit_tables import AuditRow
from ces_common.db.history_tables import KeyframeRow
from ces_common.db.tables import JOB, NODE, EventRow, InboxRow, JobRow, RemovalRow
from ces_common.db.trace_tables import SpanRow
from ces_common.db.uow import ReadTx, UnitOfWork
from ces_common.db.work_tables import LearnedWorkRow
from ces_manager.timeouts import Timeouts

_Base = aliased(KeyframeRow)


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """History older than these is dropped."""

    jobs: datetime
    messages: datetime
    removals: datetime
    sessions: datetime
    replays: datetime


def cutoffs(now: datetime, timeouts: Timeouts) -> Cutoffs:
    ages_s = (timeouts.keep_jobs_s, timeouts.keep_messages_s, timeouts.keep_removals_s)
    jobs, messages, removals = (now - timedelta(seconds=age_s) for age_s in ages_s)
    # A replay needs the events since its keyframe, and the jobs that they are about.
    return Cutoffs(jobs, messages, removals, sessions=now, replays=max(jobs, messages))


def has_aged(tx: ReadTx, cut: Cutoffs) -> bool:
    """Whether there is anything to drop: an idle look locks nothing."""
    queries = (_jobs(cut), _removals(cut), *(query for _, _, query in _simple(cut)))
    return any(tx.session.execute(query.limit(1)).first() is not None for query in queries)


def prune(uow: UnitOfWork, cut: Cutoffs, timeouts: Timeouts, now: datetime) -> int:
    """Drop at most ``timeouts.prune_jobs`` jobs and ``timeouts.prune_rows`` rows of each other kind; returns how many.
    Each kind has a transaction of its own; the version lock is held only to move the horizon."""
    dropped = _prune_jobs(uow, cut, timeouts.prune_jobs, now)
    dropped += _prune_removals(uow, cut, timeouts.prune_rows, now)
    for table, key, query in _simple(cut):
        with uow.bare_write() as session:
            keys = session.scalars(query.order_by(key).limit(timeouts.prune_rows)).all()
            if keys:
                session.execute(delete(table).where(key.in_(keys)), execution_options={"synchronize_session": False})
            dropped += len(keys)
    return dropped


def _prune_jobs(uow: UnitOfWork, cut: Cutoffs, limit: int, now: datetime) -> int:
    """Settled jobs; what they were given goes with them. Readers that have not heard of their end are told of the
    removal instead."""
    with uow.bare_write() as session:
        oldest = _jobs(cut).order_by(JobRow.finished_at).limit(limit)
        gone = {row.id: row.version for row in session.execute(oldest.with_for_update(skip_locked=True))}
        if gone:
            rows = [{"kind": JOB, "name": job, "version": at, "removed_at": now} for job, at in gone.items()]
            session.execute(insert(RemovalRow), rows)
            session.execute(delete(JobRow).where(JobRow.id.in_(gone)), execution_options={"synchronize_session": False})
        return len(gone)


def _prune_removals(uow: UnitOfWork, cut: Cutoffs, limit: int, now: datetime) -> int:
    """Whoever knows less than the latest that is dropped must read everything again."""
    with uow.read() as tx:
        if tx.session.execute(_removals(cut).limit(1)).first() is None:
            return 0
    with uow.write(now) as writing:  # nothing is removed meanwhile
        gone = writing.session.execute(_removals(cut).order_by(RemovalRow.removed_at).limit(limit)).all()
        cluster = writing.cluster()
        cluster.horizon = max([cluster.horizon, *(row.version for row in gone)])  # none, if another manager was here
        for kind in (NODE, JOB):
            names = [row.name for row in gone if row.kind == kind]
            dropped = delete(RemovalRow).where(RemovalRow.kind == kind, RemovalRow.name.in_(names))
            writing.session.execute(dropped, execution_options={"synchronize_session": False})
        return len(gone)


def _jobs(cut: Cutoffs) -> Select[str, int]:
    return select(JobRow.id, JobRow.version).where(JobRow.finished_at < cut.jobs, ~JobRow.live)


def _removals(cut: Cutoffs) -> Select[str, str, int]:
    return select(RemovalRow.kind, RemovalRow.name, RemovalRow.version).where(RemovalRow.removed_at < cut.removals)


def _simple(cut: Cutoffs) -> list[tuple[Any, Any, Select[Any]]]:
    """Table, key and the keys of what is old, of each kind that stands alone. The last keyframe before the cutoff and
    the events since it stay: from there later instants are replayed."""
    base = select(func.max(_Base.sequence)).where(_Base.time < cut.replays).scalar_subquery()
    return [
        (
            EventRow,
            EventRow.sequence,
            select(EventRow.sequence).where(
                EventRow.time < cut.messages, EventRow.published, or_(base.is_(None), EventRow.sequence <= base)
            ),
        ),
        (KeyframeRow, KeyframeRow.sequence, select(KeyframeRow.sequence).where(KeyframeRow.sequence < base)),
        (SpanRow, SpanRow.id, select(SpanRow.id).where(SpanRow.received_at < cut.messages)),
        (InboxRow, InboxRow.id, select(InboxRow.id).where(InboxRow.consumed_at < cut.messages)),
        (JoinTokenRow, JoinTokenRow.hash, select(JoinTokenRow.hash).where(JoinTokenRow.expires_at < cut.messages)),
        (AuditRow, AuditRow.id, select(AuditRow.id).where(AuditRow.published_at < cut.messages)),
        (ApplicantRow, ApplicantRow.ends_at, select(ApplicantRow.ends_at).where(ApplicantRow.ends_at <= cut.sessions)),
        (
            LearnedWorkRow,
            LearnedWorkRow.learned_at,
            select(LearnedWorkRow.learned_at).where(LearnedWorkRow.learned_at < cut.jobs),
        ),
        (SessionRow, SessionRow.id, select(SessionRow.id).where(SessionRow.expires_at < cut.sessions)),
    ]
