"""A waiting job says since which version room is being made for it"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("room_made", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("jobs", "room_made")
