"""By which keys nodes encrypt the links between them"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("link_keys", sa.Text(), nullable=False, server_default="[]"))
    op.add_column("nodes", sa.Column("link_port", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("nodes", "link_port")
    op.drop_column("nodes", "link_keys")
