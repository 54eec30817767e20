"""Devices that have applied to be made nodes"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "applicants",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("network", sa.String(64), nullable=False),
        sa.Column("user", sa.String(32), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("arch", sa.String(32), nullable=True),
        sa.Column("host_keys", sa.Text(), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", "address", name="pk_applicants"),
    )
    op.create_index("ix_applicants_ends_at", "applicants", ["ends_at"])


def downgrade() -> None:
    op.drop_table("applicants")
