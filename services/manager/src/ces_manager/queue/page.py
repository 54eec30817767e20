"""Pages of the queue, as the REST API shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, and_, select
from sqlalchemy.orm import undefer

from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.api import QueueEntry, QueuePage
from ces_common.messages.events import QueueStatus
from ces_common.states import JOB_WAITS
from ces_manager.columns import shared_columns
from ces_manager.queue.live import QueueReport
from ces_manager.queue.status import with_holder_names

_WAITING = JobRow.state.in_(JOB_WAITS)
_BY_AGE = (JobRow.priority.desc(), JobRow.submitted_at, JobRow.id)


def queue_page(
    tx: ReadTx, report: QueueReport, *, after: int, limit: int, tenants: Collection[str] | None = None
) -> QueuePage:
    """Waiting jobs after the first ``after`` of the queue: in the scheduler's order, then those that it has not
    reported. Without a report, all by priority and age, each with its last reported status. ``tenants``: whose jobs;
    None for all. Positions count all tenants' jobs."""
    waiting: ColumnElement[bool] = _WAITING
    in_all = len(report.statuses)
    if tenants is not None:
        waiting = and_(_WAITING, JobRow.tenant.in_(tenants))
        mine = set(tx.session.scalars(select(JobRow.id).where(waiting)))
        report = replace(report, statuses=[each for each in report.statuses if each.job in mine])
    line = {queue_status.job: queue_status for queue_status in report.statuses[after : after + limit]}
    rows = _rows(tx, line)
    places = [(queue_status, rows[job]) for job, queue_status in line.items() if job in rows]
    entries = _entries(tx, tenants, [(queue_status.position, row, queue_status) for queue_status, row in places])
    end, count = after + limit, len(report.statuses)
    more = end < count
    if not more:
        rest, more = _others(tx, waiting, report, max(0, after - count), limit - len(line))
        first = in_all + max(0, after - count) + 1
        entries += _entries(tx, tenants, [(first + i, row, row.queue_status) for i, row in enumerate(rest)])
    return QueuePage(items=entries, next=str(end) if more else None, remark=report.remark)


def _rows(tx: ReadTx, jobs: Iterable[str]) -> dict[str, JobRow]:
    query = select(JobRow).where(_WAITING, JobRow.id.in_(list(jobs)))
    return {row.id: row for row in tx.session.scalars(query)}


def _others(
    tx: ReadTx, waiting: ColumnElement[bool], report: QueueReport, after: int, limit: int
) -> tuple[Sequence[JobRow], bool]:
    """Waiting jobs that the scheduler has not reported, and whether there are more."""
    query = select(JobRow).options(undefer(JobRow.queue_status)).order_by(*_BY_AGE)
    if not report.statuses:
        rows = tx.session.scalars(query.where(waiting).offset(after).limit(limit + 1)).all()
        return rows[:limit], len(rows) > limit
    in_line = tx.session.scalars(select(JobRow.id).where(waiting).order_by(*_BY_AGE))
    ids = [job for job in in_line if job not in report.by_job]
    rows = tx.session.scalars(query.where(JobRow.id.in_(ids[after : after + limit]))).all()
    return rows, len(ids) > after + limit


def _entries(
    tx: ReadTx, tenants: Collection[str] | None, places: Sequence[tuple[int, JobRow, QueueStatus | None]]
) -> list[QueueEntry]:
    told = [queue_status for _, _, queue_status in places if queue_status is not None]
    views = {view.job: view for view in with_holder_names(tx, told, tenants)}
    return [
        QueueEntry(
            **shared_columns(row, QueueEntry)
            | {
                "position": position,
                "reason": row.waiting if queue_status is None else queue_status.reason,
                "queue_status": views.get(row.id),
            }
        )
        for position, row, queue_status in places
    ]
