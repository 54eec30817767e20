"""Engines for the two databases, set up so that transactions mean the same on both."""

from __future__ import annotations

import sqlite3
from typing import Any

import stamina
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

# The database could not be reached, or did not do what it should; trying again later may help. On Postgres, SQLSTATE
# decides: see _classify.
UNAVAILABLE = (OperationalError, InterfaceError, PoolTimeout)
BUSY_TIMEOUT_MS = 30_000
TIMELINE = "ces_timeline"  # of a Postgres connection: the timeline of the primary that it leads to
# The primary's timeline; fails on a standby. pg_control_checkpoint() would still tell the former one after a promotion.
_ASK_TIMELINE = "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int"
# What is no OperationalError to the driver: a server that only reads, as a standby does, or that ended the session.
_AWAY = frozenset({"25006", "25P03"})
_TOO_MUCH = "54"  # class: the statement asks for more than Postgres can do, which no waiting mends
_BEGIN = "ces_sqlite_begin"
_COMMON: dict[str, Any] = {"pool_size": 8, "max_overflow": 8, "hide_parameters": True}


def database_url(url: str | URL) -> URL:
    """The URL with our driver: psycopg 3 for Postgres. Raises ValueError for another kind of database."""
    parsed = make_url(url)
    kind = parsed.get_backend_name()
    if kind in ("postgres", "postgresql"):
        return parsed.set(drivername="postgresql+psycopg")
    if kind == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise ValueError("SQLite needs a file: every connection to :memory: would be a database of its own")
        return parsed.set(drivername="sqlite+pysqlite")
    raise ValueError(f"{kind} is not supported: give a sqlite:/// or postgresql:// URL")


def new_engine(url: str | URL) -> Engine:
    """An engine whose connections may be used from any thread, one at a time. Its errors do not show what a statement
    was given: that may be a job's environment, and errors are logged."""
    parsed = database_url(url)
    if parsed.get_backend_name() == "sqlite":
        engine = create_engine(parsed, **_COMMON, connect_args={"check_same_thread": False})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    engine = create_engine(parsed, **_COMMON, pool_pre_ping=True)
    event.listen(engine, "connect", _prepare_postgres)
    event.listen(engine, "handle_error", _classify)
    return engine


def cause_of(error: BaseException) -> str:
    """What the driver said, without the statement: for the log."""
    return str(getattr(error, "orig", None) or error)


def writing(engine: Engine) -> Engine:
    """The same engine for transactions that write. SQLite takes its write lock at once (BEGIN IMMEDIATE): a
    transaction that read first and asks for it later is refused, or would decide on what it read before."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
    # Behind the version row's lock each statement sees all that is committed.
    return engine.execution_options(isolation_level="READ COMMITTED")


def reading(engine: Engine) -> Engine:
    """The same engine for transactions that only read, all of whose statements see one moment."""
    if engine.dialect.name == "sqlite":
        return engine  # a deferred transaction in WAL mode is just that
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _prepare_postgres(connection: Any, record: Any) -> None:
    """Refuse a standby, also for reading: it may show less than was seen before. A promotion changes the timeline only
    of servers that were standbys, so a connection keeps the one that it began with."""
    with connection.cursor() as cursor:
        cursor.execute(_ASK_TIMELINE)
        (record.info[TIMELINE],) = cursor.fetchone()
    connection.rollback()


def _classify(context: ExceptionContext) -> DBAPIError | None:
    """Whatever a failover may bring is an OperationalError; what is too much for Postgres is none."""
    state = getattr(context.original_exception, "sqlstate", None) or ""
    if state in _AWAY:
        context.is_disconnect = True  # no connection of the pool is asked again
        return _as(OperationalError, context)
    return _as(DataError, context) if state.startswith(_TOO_MUCH) else None


def _as(kind: type[DBAPIError], context: ExceptionContext) -> DBAPIError:
    return kind(context.statement, context.parameters, context.original_exception, hide_parameters=True)


def _sqlite_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY


def _prepare_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself; _begin_sqlite does
    cursor = connection.cursor()
    _write_ahead(cursor)
    # A commit that was answered must outlive a power cut: agents act on it, and generations must never run backwards.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    cursor.close()


@stamina.retry(on=_sqlite_busy, attempts=None, timeout=BUSY_TIMEOUT_MS / 1e3, wait_initial=0.01, wait_max=0.1)
def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Busy is answered at once where several open a new file: no busy timeout holds while the journal changes."""
    cursor.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))
