"""A waiting job says who makes room for it, and since which version"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("room_made", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("victims", sa.Text(), nullable=False, server_default="{}"))


def downgrade() -> None:
    op.drop_column("jobs", "victims")
    op.drop_column("jobs", "room_made")
