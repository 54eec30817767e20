"""The two databases for tests. One Postgres container serves all tests of a process, each in a database of its own."""

from __future__ import annotations

import atexit
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.engine import URL
from testcontainers.community.postgres import PostgresContainer
from testcontainers.core.config import testcontainers_config

IMAGE = "postgres:16-alpine"
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))]
_numbers = count()


def new_database(kind: str, folder: Path) -> URL:
    """The URL of an empty database: ``sqlite`` in ``folder``, or ``postgres``."""
    if kind == "sqlite":
        return make_url(f"sqlite:///{folder / 'ces.db'}")
    server = _postgres()
    name = f"test_{next(_numbers)}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.set(database=name)


@cache
def _postgres() -> URL:
    testcontainers_config.ryuk_disabled = True  # its image cannot be had everywhere; we stop what we start
    container = PostgresContainer(IMAGE, driver="psycopg")
    container.start()
    atexit.register(container.stop)
    return make_url(container.get_connection_url())
