"""Bring a database to the current schema."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, insert, select, text
from sqlalchemy.engine import URL

from ces_common.db.engine import new_engine, writing
from ces_common.db.tables import ClusterRow

LOCATION = "CES_MIGRATIONS"
_LOCK = 0x636573  # any constant: only its meeting itself matters


class NoMigrations(RuntimeError):
    """The folder with the migrations is nowhere to be found."""


def migrations_folder() -> Path:
    """What CES_MIGRATIONS names, else ``migrations`` beside the packages in a checkout. Raises NoMigrations."""
    named = os.environ.get(LOCATION)
    beside = (parent / "migrations" for parent in Path(__file__).resolve().parents)
    candidates = [Path(named)] if named else list(beside)
    for folder in candidates:
        if (folder / "env.py").is_file():
            return folder
    raise NoMigrations(f"no migrations in {candidates[0]}: set {LOCATION} to the folder that holds env.py")


def alembic_config() -> Config:
    """What alembic's commands take; a connection goes in ``attributes["connection"]``."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    return config


def migrate(url: str | URL) -> None:
    """Upgrade to the newest revision in one transaction; any number may try at once."""
    engine = new_engine(url)
    try:
        with writing(engine).begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            _found_cluster(connection)
    finally:
        engine.dispose()


def _found_cluster(connection: Connection) -> None:
    """The row that every writer locks, with a name of its own for this database."""
    if connection.scalar(select(ClusterRow.id)) is None:
        connection.execute(insert(ClusterRow).values(id=1, epoch=str(uuid4())))
