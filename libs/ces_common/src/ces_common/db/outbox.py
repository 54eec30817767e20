"""Events on their way out: what the relay has still to publish, and what a client's stream goes on with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from ces_common.db.tables import EventRow, JobRow
from ces_common.db.uow import ReadTx


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A numbered event. ``body`` is the CloudEvent in structured JSON, ready to be sent. ``tenant``: whose job it is
    about; None for what is about none."""

    sequence: int
    id: str
    type: str
    bus_subject: str
    job: str | None
    body: str
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events somebody follows: those of one job, or of all jobs of some tenants. None: no matter which."""

    job: str | None = None
    tenants: Collection[str] | None = None

    def admits(self, event: StoredEvent) -> bool:
        return self.job in (None, event.job) and (self.tenants is None or event.tenant in self.tenants)


ALL = EventFilter()
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


def events_after(tx: ReadTx, sequence: int, which: EventFilter, limit: int) -> list[StoredEvent]:
    """Events numbered above ``sequence``, in order. Those of a job that is no more belong to no tenant."""
    query = select(*_COLUMNS, JobRow.tenant).outerjoin(JobRow, JobRow.id == EventRow.job)
    query = query.where(EventRow.sequence > sequence)
    if which.job is not None:
        query = query.where(EventRow.job == which.job)
    if which.tenants is not None:
        query = query.where(JobRow.tenant.in_(which.tenants))
    return [StoredEvent(*row) for row in tx.session.execute(query.order_by(EventRow.sequence).limit(limit))]


def events_before(
    tx: ReadTx, sequence: int, which: EventFilter, kinds: str | Collection[str], limit: int, far: int
) -> tuple[list[StoredEvent], int]:
    """The newest events numbered below ``sequence``, the newest first, whose type begins with ``kinds`` or is one of
    them, of the last ``far`` before it; and the number down to which there is no other."""
    last = max(sequence - far, 1)
    query = select(*_COLUMNS, JobRow.tenant).outerjoin(JobRow, JobRow.id == EventRow.job)
    query = query.where(EventRow.sequence < sequence, EventRow.sequence >= last)
    named = EventRow.type.startswith(kinds, autoescape=True) if isinstance(kinds, str) else EventRow.type.in_(kinds)
    query = query.where(named)
    if which.job is not None:
        query = query.where(EventRow.job == which.job)
    if which.tenants is not None:
        query = query.where(JobRow.tenant.in_(which.tenants))
    rows = tx.session.execute(query.order_by(EventRow.sequence.desc()).limit(limit))
    found = [StoredEvent(*row) for row in rows]
    return found, found[-1].sequence if len(found) == limit else last


def oldest_event(tx: ReadTx) -> int:
    """The number of the oldest event that is kept; 0 where there is none."""
    return tx.session.scalar(select(func.min(EventRow.sequence))) or 0


def latest_event(tx: ReadTx) -> int:
    """The number of the last event; 0 where there is none."""
    return tx.session.scalar(select(func.max(EventRow.sequence))) or 0
