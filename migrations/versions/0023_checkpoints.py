"""Where checkpoints of malleable jobs lie besides the node of their first task"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("checkpoints", sa.Text(), nullable=False, server_default="{}"))


def downgrade() -> None:
    op.drop_column("jobs", "checkpoints")
