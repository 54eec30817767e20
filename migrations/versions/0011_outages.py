"""An allocation says whether its agent is still at starting it; the cluster, on which timeline its epoch goes on"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("allocations", sa.Column("being_started", sa.Boolean(), nullable=False, server_default=sa.false()))

    op.add_column("cluster", sa.Column("timeline", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("cluster", "timeline")
    op.drop_column("allocations", "being_started")
