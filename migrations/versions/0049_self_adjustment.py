"""Applications that CES changes by itself"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("adjusts", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("moves", sa.Column("why", sa.Text(), nullable=True))
    op.add_column("moves", sa.Column("requests", sa.Float(), nullable=True))
    op.add_column("moves", sa.Column("pays_after_s", sa.Float(), nullable=True))
    op.create_table(
        "last_looks",
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("looked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("left", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("job", name="pk_last_looks"),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_last_looks_job_jobs", ondelete="CASCADE"),
    )


def downgrade() -> None:
    """Such applications stay as they are from now on, until they are placed again."""
    connection = op.get_bind()
    for name, spec in connection.execute(sa.text("SELECT id, spec FROM jobs")).all():
        told = json.loads(spec)
        if "adjust" in told:
            del told["adjust"]
            text = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
            connection.execute(sa.text("UPDATE jobs SET spec = :spec WHERE id = :id"), {"spec": text, "id": name})
    op.drop_table("last_looks")
    op.drop_column("moves", "pays_after_s")
    op.drop_column("moves", "requests")
    op.drop_column("moves", "why")
    op.drop_column("jobs", "adjusts")
