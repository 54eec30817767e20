"""Shares of GPU cards"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("allocations", sa.Column("gpu_share", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("allocations", sa.Column("gpu_memory", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("allocations", "gpu_memory")
    op.drop_column("allocations", "gpu_share")
