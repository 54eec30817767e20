"""A lease is held by one boot of a machine at a time"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("node_leases", sa.Column("machine", sa.String(64), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("node_leases", "machine")
