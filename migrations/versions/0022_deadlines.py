"""Deadlines of jobs, and what is expected of them"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("admitted_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("expected_end_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("miss_told", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("jobs", "miss_told")
    op.drop_column("jobs", "expected_end_at")
    op.drop_column("jobs", "admitted_at")
    op.drop_column("jobs", "deadline_at")
