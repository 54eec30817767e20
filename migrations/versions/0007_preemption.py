"""Jobs say what is to become of them when a more urgent one takes their place"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("preemption", sa.String(8), nullable=False, server_default="stop"))


def downgrade() -> None:
    op.drop_column("jobs", "preemption")
