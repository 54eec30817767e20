"""What nodes and allocations have used of energy"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "node_energy",
        sa.Column("node", sa.String(63), nullable=False),
        sa.Column("boot", sa.String(64), nullable=False),
        sa.Column("counted", sa.BigInteger(), nullable=False),
        sa.Column("measured", sa.BigInteger(), nullable=False),
        sa.Column("modelled", sa.BigInteger(), nullable=False),
        sa.Column("jobs_measured", sa.BigInteger(), nullable=False),
        sa.Column("jobs_modelled", sa.BigInteger(), nullable=False),
        sa.Column("meter", sa.String(16), nullable=False),
        sa.Column("counted_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_node_energy_node_nodes", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node", name="pk_node_energy"),
    )
    op.create_table(
        "allocation_energy",
        sa.Column("allocation", sa.String(26), nullable=False),
        sa.Column("boot", sa.String(64), nullable=False),
        sa.Column("counted", sa.BigInteger(), nullable=False),
        sa.Column("measured", sa.BigInteger(), nullable=False),
        sa.Column("modelled", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["allocation"], ["allocations.id"], name="fk_allocation_energy_allocation_allocations", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("allocation", name="pk_allocation_energy"),
    )


def downgrade() -> None:
    op.drop_table("allocation_energy")
    op.drop_table("node_energy")
