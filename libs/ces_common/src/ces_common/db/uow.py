"""Units of work: one transaction each, numbered and with its events, or a consistent look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from ces_common.db.engine import reading, writing
from ces_common.db.tables import ClusterRow, EventRow, InboxRow
from ces_common.messages.base import Message
from ces_common.messages.events import new_event


class NoCluster(RuntimeError):
    """The database was never migrated."""


class ReadTx:
    """A look at one moment of the database."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def cluster(self) -> ClusterRow:
        """The cluster row as of this transaction. Raises NoCluster."""
        row = self.session.get(ClusterRow, 1)
        if row is None:
            raise NoCluster("the database holds no cluster: migrate it first")
        return row


class WriteTx(ReadTx):
    """A transaction that holds the version row's lock: no other writer runs beside it."""

    def __init__(self, session: Session, now: datetime, source: str) -> None:
        super().__init__(session)
        self.now = now
        self._source = source
        row = session.scalars(select(ClusterRow).where(ClusterRow.id == 1).with_for_update()).one_or_none()
        if row is None:
            raise NoCluster("the database holds no cluster: migrate it first")
        self._cluster = row
        self._version: int | None = None
        self._events = 0

    def cluster(self) -> ClusterRow:
        return self._cluster

    @property
    def version(self) -> int:
        """The database version that this transaction makes: one more than the last. Asking for it is what makes it."""
        if self._version is None:
            self._version = self._cluster.version = self._cluster.version + 1
        return self._version

    @property
    def changed(self) -> bool:
        """Whether the transaction made a version."""
        return self._version is not None

    @property
    def emitted(self) -> bool:
        """Whether the transaction appended an event."""
        return self._events > 0

    def emit(self, aggregate: str, kind: str, subject: str, data: Message, *, job: str | None = None) -> None:
        """Append an event, numbered under the lock. ``job``: whose event stream it is part of.

        Raises KeyError or TypeError where type and data do not fit, BadName for a subject that is no plain token.
        """
        self._events += 1
        self._cluster.sequence += 1
        event = new_event(self._source, aggregate, kind, subject, data, self.now)
        event = event.model_copy(update={"sequence": self._cluster.sequence})
        self.session.add(
            EventRow(
                sequence=self._cluster.sequence,
                id=event.id,
                type=event.type,
                bus_subject=event.bus_subject,
                job=job,
                time=self.now,
                body=event.encode().decode(),
                published=False,
            )
        )

    def first_time(self, message_id: str) -> bool:
        """Record a message as consumed; False if it was before, and must have no second effect."""
        if self.session.get(InboxRow, message_id) is not None:
            return False
        self.session.add(InboxRow(id=message_id, consumed_at=self.now))
        return True


class UnitOfWork:
    """Opens transactions; may be shared by threads."""

    def __init__(self, engine: Engine, source: str = "ces/manager") -> None:
        self.engine = engine
        self._source = source
        self._writing, self._reading = writing(engine), reading(engine)

    @contextmanager
    def write(self, now: datetime) -> Iterator[WriteTx]:
        """Commits at the end; an exception leaves the database as it was."""
        with Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield WriteTx(session, now, self._source)

    @contextmanager
    def bare_write(self) -> Iterator[Session]:
        """A write without the version lock, for rows that no snapshot shows (leases, the outbox's flags)."""
        with Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def read(self) -> Iterator[ReadTx]:
        with Session(self._reading, expire_on_commit=False) as session, session.begin():
            yield ReadTx(session)
