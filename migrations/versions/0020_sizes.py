"""Sizes of malleable jobs, and the ones that they go to"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("size", sa.Integer(), nullable=True))
    op.add_column("jobs", sa.Column("next_size", sa.Integer(), nullable=True))
    op.add_column("jobs", sa.Column("resize", sa.String(26), nullable=True))
    op.add_column("jobs", sa.Column("resizing_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("resize_s", sa.Float(), nullable=True))
    op.add_column("jobs", sa.Column("checkpoint_node", sa.String(63), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "checkpoint_node")
    op.drop_column("jobs", "resize_s")
    op.drop_column("jobs", "resizing_at")
    op.drop_column("jobs", "resize")
    op.drop_column("jobs", "next_size")
    op.drop_column("jobs", "size")
