"""Events on their way out: what the relay has still to publish, and what a client's stream goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from ces_common.db.tables import EventRow
from ces_common.db.uow import ReadTx


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A numbered event. ``body`` is the CloudEvent in structured JSON, ready to be sent."""

    sequence: int
    id: str
    type: str
    bus_subject: str
    job: str | None
    body: str


_COLUMNS = (EventRow.sequence, EventRow.id, EventRow.type, EventRow.bus_subject, EventRow.job, EventRow.body)


def unpublished_events(tx: ReadTx, limit: int) -> list[StoredEvent]:
    """The oldest events that the relay has not confirmed, in order."""
    query = select(*_COLUMNS).where(~EventRow.published).order_by(EventRow.sequence).limit(limit)
    return [StoredEvent(*row) for row in tx.session.execute(query)]


def mark_published(session: Session, sequences: Sequence[int]) -> None:
    """Note that these are stored by the broker."""
    if sequences:
        session.execute(
            update(EventRow).where(EventRow.sequence.in_(sequences)).values(published=True),
            execution_options={"synchronize_session": False},
        )


def events_after(tx: ReadTx, sequence: int, job: str | None, limit: int) -> list[StoredEvent]:
    """Events numbered above ``sequence``, of one job or all, in order."""
    query = select(*_COLUMNS).where(EventRow.sequence > sequence)
    if job is not None:
        query = query.where(EventRow.job == job)
    return [StoredEvent(*row) for row in tx.session.execute(query.order_by(EventRow.sequence).limit(limit))]


def latest_event(tx: ReadTx) -> int:
    """The number of the last event; 0 where there is none."""
    return tx.session.scalar(select(func.max(EventRow.sequence))) or 0
