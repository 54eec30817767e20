"""What finished jobs have taught of the work that they do"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "learned_work",
        sa.Column("tenant", sa.String(63), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("task_group", sa.String(80), nullable=False),
        sa.Column("learned", sa.Text(), nullable=False),
        sa.Column("learned_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", "task_group", name="pk_learned_work"),
    )
    op.create_index("ix_learned_work_learned_at", "learned_work", ["learned_at"])


def downgrade() -> None:
    op.drop_table("learned_work")
