"""The cluster as it was at an instant: the keyframe before it, and the events since, as far as they had happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from functools import cache, lru_cache
from typing import Final

from pydantic import TypeAdapter
from sqlalchemy import func, select
from sqlalchemy.orm import undefer

from ces_common.db.history_tables import KeyframeRow
from ces_common.db.outbox import latest_event
from ces_common.db.tables import EventRow, JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.events import event_type
from ces_manager.errors import NotFound
from ces_manager.jobs.job_views import job_summary
from ces_manager.replay.events import JobFacts, Known, replay
from ces_manager.replay.keyframes import kept_after, kept_before, network_of, oldest_kept, past_in, past_of
from ces_manager.replay.past import Past

BATCH: Final = 500
_TIME: TypeAdapter[datetime] = TypeAdapter(datetime)
_COLUMNS = (EventRow.sequence, EventRow.type, EventRow.time, EventRow.body)
# What the row says of today, and not of the past.
_OF_TODAY = {"id", "nodes", "started_at", "finished_at", "restarts", "reason", "size", "tasks", "expected_end_at"}
_AGGREGATES = ("job", "allocation", "plan", "resize", "cpu", "move", "node", "link", "topology")
_TOLD = tuple(event_type(aggregate, "") for aggregate in _AGGREGATES)


def past_at(tx: ReadTx, now: datetime, *, at: datetime | None = None, event: int | None = None) -> Past:
    """The cluster after the last event of then, or after an event and all that was committed with it. Raises NotFound
    for what is before the first keyframe, or has not happened yet."""
    oldest, latest = oldest_kept(tx), latest_event(tx)
    if oldest is None:
        raise NotFound("no history is kept yet; it begins within seconds of the manager's start")
    sequence = _number_at(tx, at) if event is None else _end_of(tx, event, latest)
    if sequence < oldest.sequence:
        since = f"event {oldest.sequence}, {oldest.time:%Y-%m-%d %H:%M:%S} UTC"
        raise NotFound(f"history begins with {since}; ask for an instant since then")
    return replayed(tx, now, sequence)


def replayed(tx: ReadTx, now: datetime, sequence: int) -> Past:
    """The cluster after an event since the first keyframe."""
    keyframe = kept_before(tx, sequence)
    assert keyframe is not None
    past = past_in(tx, keyframe)
    network = lru_cache(1)(lambda after: network_of(past_of(tx, now) if after is None else past_in(tx, after)))
    known = Known(cache(_look_up(tx)), lambda number: network(kept_after(tx, number)))
    while past.sequence < sequence:
        query = select(*_COLUMNS).where(EventRow.sequence > past.sequence, EventRow.sequence <= sequence)
        for row in tx.session.execute(query.order_by(EventRow.sequence).limit(BATCH)).all():
            past.sequence, past.at = row.sequence, _TIME.dump_python(row.time, mode="json")
            if row.type.startswith(_TOLD):
                replay(past, json.loads(row.body), known)
    return past


def commit_before(tx: ReadTx, event: int) -> int | None:
    """The last event of the transaction before that of an event; None where none is kept."""
    time = select(EventRow.time).where(EventRow.sequence == event).scalar_subquery()
    query = select(func.max(EventRow.sequence)).where(EventRow.sequence < event, EventRow.time != time)
    return tx.session.scalar(query)


def _number_at(tx: ReadTx, at: datetime | None) -> int:
    """Of the last event until then; of the last of all for None."""
    if at is None:
        return latest_event(tx)
    events = select(func.max(EventRow.sequence)).where(EventRow.time <= at)
    # Of what a keyframe tells, the events may have been dropped.
    keyframes = select(func.max(KeyframeRow.sequence)).where(KeyframeRow.time <= at)
    return max(tx.session.scalar(query) or 0 for query in (events, keyframes))


def _end_of(tx: ReadTx, event: int, latest: int) -> int:
    """The last event of the transaction: all of them have its time. Raises NotFound."""
    if not 0 < event <= latest:
        raise NotFound(f"no event {event}; the last one is {latest}")
    time = tx.session.scalar(select(EventRow.time).where(EventRow.sequence == event))
    if time is None:  # dropped; a keyframe may know what it left
        return event
    other = select(func.min(EventRow.sequence)).where(EventRow.sequence > event, EventRow.time != time)
    following = tx.session.scalar(other)
    return latest if following is None else following - 1


def _look_up(tx: ReadTx) -> Callable[[str], JobFacts | None]:
    def look(job: str) -> JobFacts | None:
        row = tx.session.get(JobRow, job, options=[undefer(JobRow.spec), undefer(JobRow.tasks)])
        if row is None:
            return None
        elastic = row.spec.elastic
        whole = row.spec if elastic is None else row.spec.at_size(elastic.largest)
        facts = job_summary(row, []).model_dump(mode="json", exclude=_OF_TODAY, exclude_none=True)
        return JobFacts(
            facts,
            {task.name: (task.cpu, task.memory, task.gpu) for task in whole.expand_tasks()},
            elastic=lambda task: elastic is not None and elastic.includes(task),
        )

    return look
