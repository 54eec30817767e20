"""Where an attempt's time went, as the REST API tells it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import select

from ces_common.db.move_tables import MoveRow
from ces_common.db.outbox import EventFilter, events_after
from ces_common.db.tables import AllocationRow
from ces_common.db.trace_tables import SpanRow
from ces_common.db.uow import ReadTx
from ces_common.messages.traces import JobTrace, SpanView
from ces_manager.errors import Invalid
from ces_manager.jobs.spans import spans_of
from ces_manager.jobs.task_moves import ASIDE
from ces_manager.jobs.transitions import job_row
from ces_manager.jobs.waterfall import happened, in_order, of_events

MOST_EVENTS: Final = 20_000  # of a job that are looked through


def job_trace(tx: ReadTx, job: str, attempt: int | None) -> JobTrace:
    """Of the present attempt where none is named. Raises NotFound, and Invalid for an attempt that there was not."""
    row = job_row(tx, job)
    wanted = attempt or row.attempt
    if wanted > row.attempt:
        raise Invalid("attempt", f"job {row.name} has had {row.attempt}: give a number from 1 to {row.attempt}")
    known = {"id": row.id, "name": row.name, "attempt": wanted, "attempts": row.attempt}
    told = spans_of(tx, row.id, wanted)
    if told:
        first = next(
            (span for span in told if span.service == "manager"), told[0]
        ).start_us  # others' clocks may be off
        return JobTrace(
            **known,
            source="spans",
            trace=told[0].trace,
            started_at=datetime.fromtimestamp(first / 1e6, UTC),
            spans=in_order([_view(span, first) for span in told]),
        )
    query = select(AllocationRow.id, AllocationRow.attempt).where(AllocationRow.job == row.id)
    attempts: dict[str, int] = {row.id: row.attempt for row in tx.session.execute(query)}
    moves = select(MoveRow.attempt, MoveRow.old, MoveRow.new, MoveRow.back).where(MoveRow.job == row.id)
    for moved, *held in tx.session.execute(moves):  # what a task has moved away from is of no attempt by itself
        attempts |= {each: moved for each in held if attempts.get(each) == ASIDE}
    kept = events_after(tx, 0, EventFilter(job=row.id), MOST_EVENTS)
    events = [event for stored in kept if (event := happened(json.loads(stored.body), attempts)) is not None]
    began, spans = of_events(events, wanted)
    return JobTrace(**known, source="events", started_at=began, spans=spans)


def _view(row: SpanRow, first_us: int) -> SpanView:
    return SpanView(
        id=row.span,
        parent=row.parent,
        depth=0,
        name=row.name,
        service=row.service,
        node=row.node,
        start_us=row.start_us - first_us,
        duration_us=row.duration_us,
        attributes=row.attributes,
        links=[link[36:52] for link in row.links],
    )
