"""A flow's rate is called rate in every table, and what a waiting job is told its queue status"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

RENAMED = (("jobs", "standing", "queue_status"), ("reservations", "bandwidth", "rate"), ("hops", "bandwidth", "rate"))


def upgrade() -> None:
    for table, before, after in RENAMED:
        op.execute(
            f"ALTER TABLE {table} RENAME COLUMN {before} TO {after}"
        )  # what alembic writes copies a SQLite table


def downgrade() -> None:
    for table, before, after in RENAMED:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {after} TO {before}")
