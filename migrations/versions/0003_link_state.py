"""Links have a live state and a measured capacity"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ADDED = ("state", "state_since", "state_reason", "measured", "measured_at", "round_trip_us")


def upgrade() -> None:
    op.add_column("links", sa.Column("state", sa.String(length=8), server_default="up", nullable=False))
    op.add_column("links", sa.Column("state_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("links", sa.Column("state_reason", sa.Text(), nullable=True))
    op.add_column("links", sa.Column("measured", sa.BigInteger(), nullable=True))
    op.add_column("links", sa.Column("measured_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("links", sa.Column("round_trip_us", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    for column in reversed(ADDED):
        op.drop_column("links", column)
