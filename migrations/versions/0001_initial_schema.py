"""Initial schema"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cluster",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.String(length=36), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("topology_version", sa.BigInteger(), nullable=False),
        sa.Column("last_flow", sa.Integer(), nullable=False),
        sa.Column("last_port", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cluster")),
    )
    op.create_table(
        "events",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("type", sa.String(length=64), nullable=False),
        sa.Column("bus_subject", sa.String(length=300), nullable=False),
        sa.Column("job", sa.String(length=26), nullable=True),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_events")),
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index("ix_events_job_sequence", ["job", "sequence"], unique=False)
        batch_op.create_index("ix_events_published_sequence", ["published", "sequence"], unique=False)
        batch_op.create_index(batch_op.f("ix_events_time"), ["time"], unique=False)

    op.create_table(
        "hops",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("src", sa.String(length=63), nullable=False),
        sa.Column("dst", sa.String(length=63), nullable=False),
        sa.Column("bandwidth", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", "src", "dst", name=op.f("pk_hops")),
    )
    with op.batch_alter_table("hops", schema=None) as batch_op:
        batch_op.create_index("ix_hops_link", ["src", "dst"], unique=False)

    op.create_table(
        "inbox",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("consumed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox")),
    )
    with op.batch_alter_table("inbox", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_inbox_consumed_at"), ["consumed_at"], unique=False)

    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("restart", sa.Text(), nullable=False),
        sa.Column("disconnect", sa.String(length=8), nullable=False),
        sa.Column("tasks", sa.Text(), nullable=False),
        sa.Column("flows", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("state_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=True),
        sa.Column("late", sa.Integer(), nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("waiting", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("idempotency_key", sa.String(length=255), nullable=True),
        sa.Column("body_hash", sa.String(length=64), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_jobs_idempotency_key")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(
            "ix_jobs_deadline",
            ["deadline"],
            unique=False,
            postgresql_where=sa.text("deadline IS NOT NULL"),
            sqlite_where=sa.text("deadline IS NOT NULL"),
        )
        batch_op.create_index("ix_jobs_live_id", ["live", "id"], unique=False)
        batch_op.create_index("ix_jobs_state_id", ["state", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_version"), ["version"], unique=False)

    op.create_table(
        "join_tokens",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("node", sa.String(length=63), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("used_by", sa.String(length=56), nullable=True),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_join_tokens")),
    )
    op.create_table(
        "media",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("bandwidth", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_media")),
    )
    op.create_table(
        "nodes",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("cpu", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("gpu", sa.Integer(), nullable=False),
        sa.Column("arch", sa.String(length=32), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("runtime", sa.String(length=16), nullable=False),
        sa.Column("network", sa.String(length=16), nullable=False),
        sa.Column("host_address", sa.String(length=64), nullable=False),
        sa.Column("subnet", sa.String(length=18), nullable=False),
        sa.Column("last_host", sa.Integer(), nullable=False),
        sa.Column("public_key", sa.String(length=56), nullable=False),
        sa.Column("cordoned", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("joined_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_nodes")),
        sa.UniqueConstraint("subnet", name=op.f("uq_nodes_subnet")),
    )
    with op.batch_alter_table("nodes", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_nodes_version"), ["version"], unique=False)

    op.create_table(
        "allocations",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("job", sa.String(length=26), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(length=80), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(length=63), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("cpu", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("gpu", sa.Integer(), nullable=False),
        sa.Column("incarnation", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("stopping_since", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=op.f("fk_allocations_job_jobs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name=op.f("fk_allocations_node_nodes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allocations")),
    )
    with op.batch_alter_table("allocations", schema=None) as batch_op:
        batch_op.create_index("ix_allocations_job_attempt", ["job", "attempt"], unique=False)
        batch_op.create_index("ix_allocations_state_node", ["state", "node"], unique=False)

    op.create_table(
        "links",
        sa.Column("src", sa.String(length=63), nullable=False),
        sa.Column("dst", sa.String(length=63), nullable=False),
        sa.Column("bandwidth", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("medium", sa.String(length=63), nullable=True),
        sa.ForeignKeyConstraint(["medium"], ["media.name"], name=op.f("fk_links_medium_media")),
        sa.PrimaryKeyConstraint("src", "dst", name=op.f("pk_links")),
    )
    with op.batch_alter_table("links", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_links_medium"), ["medium"], unique=False)

    op.create_table(
        "node_leases",
        sa.Column("node", sa.String(length=63), nullable=False),
        sa.Column("boot", sa.String(length=64), nullable=False),
        sa.Column("heard_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name=op.f("fk_node_leases_node_nodes"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node", name=op.f("pk_node_leases")),
    )
    with op.batch_alter_table("node_leases", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_node_leases_heard_at"), ["heard_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_node_leases_lease_until"), ["lease_until"], unique=False)

    op.create_table(
        "plans",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("job", sa.String(length=26), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("solver", sa.String(length=128), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("committed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("metrics", sa.Text(), nullable=False),
        sa.Column("considered", sa.Text(), nullable=False),
        sa.Column("assignments", sa.Text(), nullable=False),
        sa.Column("flows", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=op.f("fk_plans_job_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plans")),
    )
    with op.batch_alter_table("plans", schema=None) as batch_op:
        batch_op.create_index("ix_plans_job_attempt", ["job", "attempt"], unique=False)

    op.create_table(
        "reservations",
        sa.Column("job", sa.String(length=26), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("src", sa.String(length=80), nullable=False),
        sa.Column("dst", sa.String(length=80), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("min", sa.BigInteger(), nullable=False),
        sa.Column("max", sa.BigInteger(), nullable=False),
        sa.Column("bandwidth", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=op.f("fk_reservations_job_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "attempt", "src", "dst", name=op.f("pk_reservations")),
    )
    with op.batch_alter_table("reservations", schema=None) as batch_op:
        batch_op.create_index(
            "uq_reservations_number",
            ["number"],
            unique=True,
            postgresql_where=sa.text("held"),
            sqlite_where=sa.text("held = 1"),
        )


def downgrade() -> None:
    with op.batch_alter_table("reservations", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_reservations_number", postgresql_where=sa.text("held"), sqlite_where=sa.text("held = 1")
        )

    op.drop_table("reservations")
    with op.batch_alter_table("plans", schema=None) as batch_op:
        batch_op.drop_index("ix_plans_job_attempt")

    op.drop_table("plans")
    with op.batch_alter_table("node_leases", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_node_leases_lease_until"))
        batch_op.drop_index(batch_op.f("ix_node_leases_heard_at"))

    op.drop_table("node_leases")
    with op.batch_alter_table("links", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_links_medium"))

    op.drop_table("links")
    with op.batch_alter_table("allocations", schema=None) as batch_op:
        batch_op.drop_index("ix_allocations_state_node")
        batch_op.drop_index("ix_allocations_job_attempt")

    op.drop_table("allocations")
    with op.batch_alter_table("nodes", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_nodes_version"))

    op.drop_table("nodes")
    op.drop_table("media")
    op.drop_table("join_tokens")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_jobs_version"))
        batch_op.drop_index("ix_jobs_state_id")
        batch_op.drop_index("ix_jobs_live_id")
        batch_op.drop_index(
            "ix_jobs_deadline",
            postgresql_where=sa.text("deadline IS NOT NULL"),
            sqlite_where=sa.text("deadline IS NOT NULL"),
        )

    op.drop_table("jobs")
    with op.batch_alter_table("inbox", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_inbox_consumed_at"))

    op.drop_table("inbox")
    with op.batch_alter_table("hops", schema=None) as batch_op:
        batch_op.drop_index("ix_hops_link")

    op.drop_table("hops")
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_events_time"))
        batch_op.drop_index("ix_events_published_sequence")
        batch_op.drop_index("ix_events_job_sequence")

    op.drop_table("events")
    op.drop_table("cluster")
