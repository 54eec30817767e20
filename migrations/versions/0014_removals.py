"""Nodes and jobs that were removed are remembered for a while, for those who know them"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "removals",
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("pk_removals")),
    )
    op.create_index(op.f("ix_removals_version"), "removals", ["version"])
    op.create_index(op.f("ix_removals_removed_at"), "removals", ["removed_at"])


def downgrade() -> None:
    """Who has not heard of a removal must be told everything."""
    op.execute("UPDATE cluster SET horizon = version")
    op.drop_table("removals")
