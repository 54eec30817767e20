"""Traced attempts of jobs, and the spans that services tell of them"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("traceparent", sa.String(55), nullable=True))
    op.create_table(
        "spans",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("trace", sa.String(32), nullable=False),
        sa.Column("span", sa.String(16), nullable=False),
        sa.Column("parent", sa.String(16), nullable=True),
        sa.Column("service", sa.String(16), nullable=False),
        sa.Column("node", sa.String(63), nullable=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False),
        sa.Column("duration_us", sa.BigInteger(), nullable=False),
        sa.Column("attributes", sa.Text(), nullable=False),
        sa.Column("links", sa.Text(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_spans_job_jobs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_spans"),
    )
    op.create_index("ix_spans_job_attempt", "spans", ["job", "attempt"])
    op.create_index("ix_spans_received_at", "spans", ["received_at"])


def downgrade() -> None:
    op.drop_table("spans")
    op.drop_column("jobs", "traceparent")
