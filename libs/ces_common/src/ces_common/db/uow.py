"""Units of work: one transaction each, numbered and with its events, or a consistent look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import structlog
from sqlalchemy import Engine, Select, insert, select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from ces_common.db.engine import BUSY_TIMEOUT_MS, TIMELINE, reading, writing
from ces_common.db.tables import ClusterRow, EventRow, InboxRow
from ces_common.db.trace_tables import SpanRow, span_row
from ces_common.db.turns import WriteTurns
from ces_common.messages.base import Message
from ces_common.messages.events import new_event
from ces_common.messages.traces import Span
from ces_common.tracing import OpenSpan

log = structlog.get_logger()


class NoCluster(RuntimeError):
    """The database was never migrated."""


@dataclass(slots=True)
class Cluster:
    """The cluster row as of a transaction; a writer's changes to it are written at its end."""

    epoch: str
    version: int
    sequence: int
    topology_version: int
    horizon: int
    last_flow: int
    last_port: int
    last_subnet: int


SOURCE = "ces/manager"  # of the events: nobody else writes
_TABLE = ClusterRow.__table__
_LOOK = select(*(_TABLE.c[each.name] for each in fields(Cluster))).where(_TABLE.c.id == 1)
_LOCK = _LOOK.with_for_update()
_LOCK_EPOCH = select(_TABLE.c.timeline, _TABLE.c.version).where(_TABLE.c.id == 1).with_for_update()
_CHANGE = update(ClusterRow).where(_TABLE.c.id == 1)
_APPEND = insert(EventRow.__table__)  # type: ignore[arg-type]
_KEEP = insert(SpanRow.__table__)  # type: ignore[arg-type]


def _read_cluster(session: Session, query: Select[Any]) -> Cluster:
    row = session.connection().execute(query).one_or_none()
    if row is None:
        raise NoCluster("the database holds no cluster: migrate it first")
    return Cluster(*row)


class ReadTx:
    """A look at one moment of the database."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._seen: Cluster | None = None

    def cluster(self) -> Cluster:
        """Raises NoCluster."""
        if self._seen is None:
            self._seen = _read_cluster(self.session, _LOOK)
        return self._seen


class WriteTx(ReadTx):
    """A transaction that holds the version row's lock: no other writer runs beside it. ``actor``: who asked for it."""

    def __init__(self, session: Session, now: datetime, actor: str | None = None) -> None:
        super().__init__(session)
        self.now, self.actor = now, actor
        self._cluster = _read_cluster(session, _LOCK)
        self._before = replace(self._cluster)
        self._version: int | None = None
        self._events: list[dict[str, object]] = []
        self.noted: list[Callable[[], None]] = []
        self.cause: str | None = None  # the context of what it acts on, where that is traced
        self.spans: list[OpenSpan] = []  # which end with it, and are kept with what it changes
        self.finished: list[Span] = []

    def note(self, observe: Callable[[], None]) -> None:
        """Have this called once the transaction is committed, to count what it did. It must not fail."""
        self.noted.append(observe)

    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def version(self) -> int:
        """The database version that this transaction makes: one more than the last. Asking for it is what makes it."""
        if self._version is None:
            self._version = self._cluster.version = self._cluster.version + 1
        return self._version

    def emit(
        self,
        aggregate: str,
        kind: str,
        subject: str,
        data: Message,
        *,
        job: str | None = None,
        traceparent: str | None = None,
    ) -> None:
        """Append an event, numbered under the lock. ``job``: whose event stream it is part of; ``traceparent``: in
        which context it came about.

        Raises KeyError or TypeError where type and data do not fit, BadName for a subject that is no plain token.
        """
        self._cluster.sequence += 1
        event = new_event(SOURCE, aggregate, kind, subject, data, self.now, traceparent=traceparent)
        event = event.model_copy(update={"sequence": self._cluster.sequence, "actor": self.actor})
        self._events.append(
            {
                "sequence": self._cluster.sequence,
                "id": event.id,
                "type": event.type,
                "bus_subject": event.bus_subject,
                "job": job,
                "time": self.now,
                "body": event.encode().decode(),
                "published": False,
            }
        )

    def first_time(self, message_id: str) -> bool:
        """Record a message as consumed; False if it was before, and must have no second effect."""
        if self.session.get(InboxRow, message_id) is not None:
            return False
        self.session.add(InboxRow(id=message_id, consumed_at=self.now))
        return True

    def complete(self) -> None:
        """Write what was held back: the events and the cluster row."""
        self.session.flush()
        connection = self.session.connection()
        if self._events:
            connection.execute(_APPEND, self._events)
        if self.spans:
            self.finished = [each.finished() for each in self.spans]
            connection.execute(_KEEP, [span_row("manager", None, each, self.now) for each in self.finished])
        if self._cluster != self._before:
            connection.execute(_CHANGE, asdict(self._cluster))


def begin_epoch(session: Session, timeline: int) -> None:
    """Note on which timeline of Postgres the database goes on. Where it is another than before, a standby was promoted:
    it may lack the last transactions, and counts versions again from there, so a new epoch begins."""
    row = session.connection().execute(_LOCK_EPOCH).one_or_none()
    if row is None or row.timeline == timeline:
        return
    changed: dict[str, object] = {"timeline": timeline}
    if row.timeline is not None:
        changed["epoch"] = str(uuid4())
        log.warning("the database goes on in a new epoch", timeline=timeline, before=row.timeline, after=row.version)
    session.connection().execute(_CHANGE, changed)


class UnitOfWork:
    """Opens transactions; may be shared by threads. ``on_spans``: called with the spans of each that was committed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writing, self._reading = writing(engine), reading(engine)
        self._timeline: int | None = None  # the latest that a connection told
        self.on_spans: Callable[[Sequence[Span]], None] | None = None
        # Postgres locks rows: there, what renews leases waits for nobody who writes something else.
        self._turns = WriteTurns(BUSY_TIMEOUT_MS / 1000) if engine.dialect.name == "sqlite" else None

    @contextmanager
    def write(self, now: datetime, actor: str | None = None) -> Iterator[WriteTx]:
        """Commits at the end; an exception leaves the database as it was."""
        with self._turn(False), Session(self._writing, expire_on_commit=False) as session, session.begin():
            self._look_at_timeline(session)
            tx = WriteTx(session, now, actor)
            yield tx
            tx.complete()
        for observe in tx.noted:
            observe()
        if tx.finished and self.on_spans is not None:
            self.on_spans(tx.finished)

    @contextmanager
    def bare_write(self, *, urgent: bool = False) -> Iterator[Session]:
        """A write without the version lock, for rows that no snapshot shows (leases, the outbox's flags). ``urgent``:
        it comes before every other write of this process that has not begun."""
        with self._turn(urgent), Session(self._writing, expire_on_commit=False) as session, session.begin():
            self._look_at_timeline(session)
            yield session

    def _turn(self, urgent: bool) -> AbstractContextManager[None]:
        return nullcontext() if self._turns is None else self._turns.turn(urgent=urgent)

    @contextmanager
    def read(self) -> Iterator[ReadTx]:
        with Session(self._reading, expire_on_commit=False) as session, session.begin():
            self._look_at_timeline(session)
            yield ReadTx(session)

    def _look_at_timeline(self, session: Session) -> None:
        """Before anything else: what was read or written after a promotion belongs to the new epoch. Timelines only
        grow, so a connection that tells an earlier one leads to a server whose place another has taken: it is given
        up. Raises OperationalError."""
        timeline = session.connection().info.get(TIMELINE)
        if timeline == self._timeline:
            return
        with Session(self._writing) as other, other.begin():
            noted = other.connection().info[TIMELINE]
            latest = max(timeline, noted, self._timeline or 0)
            for each, of in ((session, timeline), (other, noted)):
                if of < latest:
                    each.connection().invalidate()
            if min(timeline, noted) < latest:
                raise OperationalError("the timeline", None, ConnectionError("another server has taken over"))
            begin_epoch(other, noted)
        self._timeline = latest
