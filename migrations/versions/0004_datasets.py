"""Nodes offer datasets to jobs"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("datasets", sa.Text(), server_default="[]", nullable=False))
    op.add_column("nodes", sa.Column("data_port", sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    op.drop_column("nodes", "data_port")
    op.drop_column("nodes", "datasets")
