"""Access tokens; idempotency keys are of one tenant each."""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "access_tokens",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("id", sa.String(26), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("tenants", sa.Text(), nullable=True),
        sa.Column("max_priority", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_access_tokens"),
        sa.UniqueConstraint("id", name="uq_access_tokens_id"),
    )
    op.create_index("ix_jobs_tenant_state", "jobs", ["tenant", "state"])
    jobs = sa.table("jobs", sa.column("id"), sa.column("tenant"), sa.column("idempotency_key"))
    with_key = sa.select(jobs).where(jobs.c.idempotency_key.is_not(None))
    for job, tenant, key in op.get_bind().execute(with_key).all():
        kept = hashlib.sha256(f"{tenant}\0{key}".encode()).hexdigest()
        op.execute(jobs.update().where(jobs.c.id == job).values(idempotency_key=kept))


def downgrade() -> None:
    op.drop_index("ix_jobs_tenant_state", "jobs")
    op.drop_table("access_tokens")
