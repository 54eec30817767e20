"""Delays of links, and what agents say of their nodes' places and power"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("links", sa.Column("delay", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("nodes", sa.Column("profile", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("nodes", "profile")
    op.drop_column("links", "delay")
