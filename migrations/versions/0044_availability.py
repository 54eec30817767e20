"""How often nodes and links were there, as far as it was learned"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def _seconds() -> list[sa.Column[float]]:
    return [sa.Column(name, sa.Float(), nullable=False) for name in ("up_s", "down_s", "least")]


def upgrade() -> None:
    op.create_table(
        "node_availability",
        sa.Column("node", sa.String(63), nullable=False),
        *_seconds(),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_node_availability_node_nodes", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node", name="pk_node_availability"),
    )
    op.create_table(
        "link_availability",
        sa.Column("src", sa.String(63), nullable=False),
        sa.Column("dst", sa.String(63), nullable=False),
        *_seconds(),
        sa.PrimaryKeyConstraint("src", "dst", name="pk_link_availability"),
    )


def downgrade() -> None:
    op.drop_table("link_availability")
    op.drop_table("node_availability")
