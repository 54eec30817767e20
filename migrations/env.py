"""Alembic's entry point. ``ces_common.db.migrate`` hands over its connection; from the command line
(``alembic -c migrations/alembic.ini ...``) the database is the one that CES_DATABASE_URL names."""

import os
from typing import Any

from alembic import context
from sqlalchemy import Connection
from sqlalchemy.types import TypeDecorator

from ces_common.db.engine import new_engine, writing
from ces_common.db.schema import METADATA


def render_item(kind: str, item: Any, context: Any) -> str | bool:
    """Migrations name plain SQL types, so that they stay true whatever becomes of our own."""
    return f"sa.{item.impl_instance!r}" if kind == "type" and isinstance(item, TypeDecorator) else False


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True, render_item=render_item)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    engine = writing(new_engine(os.environ["CES_DATABASE_URL"]))
    with engine.begin() as own:
        run(own)
    engine.dispose()
