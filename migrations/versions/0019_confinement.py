"""How nodes confine their workers, and what a start waits for beside why the worker ended before"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("confinement", sa.Text(), nullable=True))
    op.add_column("allocations", sa.Column("waits", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("allocations", "waits")
    op.drop_column("nodes", "confinement")
