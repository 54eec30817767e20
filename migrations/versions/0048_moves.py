"""Moves of single tasks of running jobs"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "moves",
        sa.Column("id", sa.String(26), nullable=False),
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(80), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("source", sa.String(63), nullable=False),
        sa.Column("destination", sa.String(63), nullable=False),
        sa.Column("old", sa.String(26), nullable=False),
        sa.Column("new", sa.String(26), nullable=False),
        sa.Column("back", sa.String(26), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_moves"),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_moves_job_jobs", ondelete="CASCADE"),
    )
    op.create_index("ix_moves_job", "moves", ["job"])
    op.create_index("ix_moves_state", "moves", ["state"])
    op.add_column("jobs", sa.Column("move", sa.String(26), nullable=True))


def downgrade() -> None:
    """Moves under way end: what they hold beside is given back. A task that has left its node goes on where it is."""
    op.execute("DELETE FROM allocations WHERE attempt = 0 AND state IN ('pending', 'running', 'stopping')")
    op.execute("DELETE FROM hops WHERE number IN (SELECT number FROM reservations WHERE attempt = 0 AND held)")
    op.execute("DELETE FROM reservations WHERE attempt = 0 AND held")
    op.drop_column("jobs", "move")
    op.drop_table("moves")
