"""What agents measured of how fast their nodes are"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("measured", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("nodes", "measured")
