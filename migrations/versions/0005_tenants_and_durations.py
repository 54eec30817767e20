"""Jobs have a tenant, may say how long they run, and know since when they hold something"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("tenant", sa.String(length=63), server_default="default", nullable=False))
    op.add_column("jobs", sa.Column("expected_s", sa.BigInteger(), nullable=True))
    op.add_column("jobs", sa.Column("placed_at", sa.DateTime(timezone=True), nullable=True))
    op.execute(
        "UPDATE jobs SET placed_at = (SELECT max(committed_at) FROM plans"
        " WHERE plans.job = jobs.id AND plans.attempt = jobs.attempt) WHERE live AND state <> 'queued'"
    )


def downgrade() -> None:
    for column in ("placed_at", "expected_s", "tenant"):
        op.drop_column("jobs", column)
