"""Heartbeats are counted and not timed, waits have no stored deadline, nodes can be forgotten, history is pruned"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Columns are dropped and added in place: rebuilding a table that others refer to would empty those on SQLite.


def upgrade() -> None:
    op.drop_index("ix_node_leases_heard_at", table_name="node_leases")
    op.drop_index("ix_node_leases_lease_until", table_name="node_leases")
    op.drop_column("node_leases", "lease_until")
    op.add_column("node_leases", sa.Column("beats", sa.BigInteger(), server_default="0", nullable=False))
    op.drop_index("ix_jobs_deadline", table_name="jobs")
    op.drop_column("jobs", "deadline")
    op.create_index(op.f("ix_jobs_finished_at"), "jobs", ["finished_at"])
    op.create_index(op.f("ix_join_tokens_expires_at"), "join_tokens", ["expires_at"])
    op.add_column("cluster", sa.Column("horizon", sa.BigInteger(), server_default="0", nullable=False))
    with op.batch_alter_table("allocations", schema=None) as batch_op:  # nothing refers to it
        batch_op.drop_constraint(op.f("fk_allocations_node_nodes"), type_="foreignkey")
    op.create_table(
        "revoked_keys",
        sa.Column("public_key", sa.String(length=56), nullable=False),
        sa.Column("node", sa.String(length=63), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("public_key", name=op.f("pk_revoked_keys")),
    )


def downgrade() -> None:
    op.drop_table("revoked_keys")
    op.execute("DELETE FROM allocations WHERE node NOT IN (SELECT name FROM nodes)")
    with op.batch_alter_table("allocations", schema=None) as batch_op:
        batch_op.create_foreign_key(op.f("fk_allocations_node_nodes"), "nodes", ["node"], ["name"])
    op.drop_column("cluster", "horizon")
    op.drop_index(op.f("ix_join_tokens_expires_at"), table_name="join_tokens")
    op.drop_index(op.f("ix_jobs_finished_at"), table_name="jobs")
    op.add_column("jobs", sa.Column("deadline", sa.DateTime(timezone=True), nullable=True))
    timed = sa.text("deadline IS NOT NULL")
    op.create_index("ix_jobs_deadline", "jobs", ["deadline"], postgresql_where=timed, sqlite_where=timed)
    op.drop_column("node_leases", "beats")
    long_ago = sa.Column(
        "lease_until", sa.DateTime(timezone=True), server_default="1970-01-01 00:00:00.000000", nullable=False
    )
    op.add_column("node_leases", long_ago)
    op.create_index("ix_node_leases_lease_until", "node_leases", ["lease_until"])
    op.create_index("ix_node_leases_heard_at", "node_leases", ["heard_at"])
