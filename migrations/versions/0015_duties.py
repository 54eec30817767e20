"""What one manager does for all, and who holds it"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    table = op.create_table(
        "duties",
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("holder", sa.String(300), nullable=False),
        sa.Column("process", sa.String(32), nullable=False),
        sa.Column("renewed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_duties"),
    )
    op.bulk_insert(
        table,
        [{"name": name, "holder": "", "process": "", "renewed": 0} for name in ("history", "probe", "relay", "time")],
    )


def downgrade() -> None:
    op.drop_table("duties")
