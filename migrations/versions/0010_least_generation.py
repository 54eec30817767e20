"""A node that returns says since which version nothing that was desired before may start there; subnets go round"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("least_generation", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE nodes SET least_generation = 1")  # asks for a document of the present epoch, and no more
    op.add_column("cluster", sa.Column("last_subnet", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("cluster", "last_subnet")
    op.drop_column("nodes", "least_generation")
