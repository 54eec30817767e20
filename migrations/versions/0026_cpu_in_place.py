"""CPU of running workers that changes in place"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("allocations", sa.Column("cpu_desired", sa.BigInteger(), nullable=True))
    op.add_column("allocations", sa.Column("cpu_since", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("allocations", "cpu_since")
    op.drop_column("allocations", "cpu_desired")
