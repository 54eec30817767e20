"""How waiting jobs stand in the queue, as the scheduler told it: what of it is news, and how people are shown it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from sqlalchemy import select
from sqlalchemy.orm import undefer

from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.api import QueueEntry, QueuePage
from ces_common.messages.events import JobName, Standing, StandingView
from ces_common.states import JOB_WAITS
from ces_manager.live_queue import Told

_WAITING = JobRow.state.in_(JOB_WAITS)
_BY_AGE = (JobRow.priority.desc(), JobRow.submitted_at, JobRow.id)


def promise(standing: Standing | None) -> Mapping[str, object]:
    """What of a standing is worth telling anew: not its place and score, which change all the time."""
    return {} if standing is None else standing.model_dump(exclude={"position", "score"})


def named(tx: ReadTx, standings: Sequence[Standing]) -> list[StandingView]:
    """With the names of the jobs that hold what is waited for."""
    ids = set(chain.from_iterable(standing.held_by for standing in standings))
    names = {holder.id: holder for holder in job_names(tx, ids)}
    return [
        StandingView(**dict(standing), holders=[names[id_] for id_ in standing.held_by if id_ in names])
        for standing in standings
    ]


def job_names(tx: ReadTx, jobs: Iterable[str]) -> list[JobName]:
    """Of those that there are, in the order asked for."""
    wanted = list(dict.fromkeys(jobs))
    if not wanted:
        return []
    found = {
        row.id: row.name for row in tx.session.execute(select(JobRow.id, JobRow.name).where(JobRow.id.in_(wanted)))
    }
    return [JobName(id=job, name=found[job]) for job in wanted if job in found]


def queue_page(tx: ReadTx, told: Told, *, after: int, limit: int) -> QueuePage:
    """Waiting jobs from place ``after`` of the queue on: as the scheduler has them, then those that it has not told of.
    Where it tells nothing, all by priority and age, with what it last told of each."""
    line = {standing.job: standing for standing in told.standings[after : after + limit]}
    rows = _rows(tx, line)
    places = [(standing, rows[job]) for job, standing in line.items() if job in rows]
    entries = _entries(tx, [(standing.position, row, standing) for standing, row in places])
    end, count = after + limit, len(told.standings)
    more = end < count
    if not more:
        rest, more = _others(tx, told, max(0, after - count), limit - len(line))
        first = max(after, count) + 1
        entries += _entries(tx, [(first + i, row, row.standing) for i, row in enumerate(rest)])
    return QueuePage(items=entries, next=str(end) if more else None, remark=told.remark)


def _rows(tx: ReadTx, jobs: Iterable[str]) -> dict[str, JobRow]:
    query = select(JobRow).where(_WAITING, JobRow.id.in_(list(jobs)))
    return {row.id: row for row in tx.session.scalars(query)}


def _others(tx: ReadTx, told: Told, after: int, limit: int) -> tuple[Sequence[JobRow], bool]:
    """Waiting jobs that the scheduler has not told of, and whether there are more."""
    query = select(JobRow).options(undefer(JobRow.standing)).order_by(*_BY_AGE)
    if not told.standings:
        rows = tx.session.scalars(query.where(_WAITING).offset(after).limit(limit + 1)).all()
        return rows[:limit], len(rows) > limit
    waiting = tx.session.scalars(select(JobRow.id).where(_WAITING).order_by(*_BY_AGE))
    ids = [job for job in waiting if job not in told.by_job]
    rows = tx.session.scalars(query.where(JobRow.id.in_(ids[after : after + limit]))).all()
    return rows, len(ids) > after + limit


def _entries(tx: ReadTx, places: Sequence[tuple[int, JobRow, Standing | None]]) -> list[QueueEntry]:
    views = {view.job: view for view in named(tx, [standing for _, _, standing in places if standing is not None])}
    return [
        QueueEntry(
            position=position,
            id=row.id,
            name=row.name,
            state=row.state,
            tenant=row.tenant,
            priority=row.priority,
            submitted_at=row.submitted_at,
            reason=row.waiting if standing is None else standing.reason,
            standing=views.get(row.id),
        )
        for position, row, standing in places
    ]
