"""A join token knows the request that it admitted"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("join_tokens", sa.Column("used_for", sa.String(64), nullable=True))


def downgrade() -> None:
    op.drop_column("join_tokens", "used_for")
