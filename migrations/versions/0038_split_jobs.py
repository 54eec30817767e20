"""Jobs that are split over regions, and nodes that stand for other regions' gateways"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("region", sa.String(16), nullable=True))
    op.add_column("jobs", sa.Column("part", sa.Text(), nullable=True))
    op.create_table(
        "regions_parts",
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("home", sa.String(16), nullable=False),
        sa.Column("home_job", sa.String(128), nullable=False),
        sa.Column("home_attempt", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("committed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("started", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("hold_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ready", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_regions_parts_job_jobs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", name="pk_regions_parts"),
        sa.UniqueConstraint(
            "home", "home_job", "home_attempt", "part", name="uq_regions_parts_home_home_job_home_attempt_part"
        ),
    )
    op.create_index("ix_regions_parts_committed", "regions_parts", ["committed"])
    op.create_table(
        "regions_splits",
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.Column("places", sa.Text(), nullable=False),
        sa.Column("closed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("unknown_since", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_regions_splits_job_jobs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", name="pk_regions_splits"),
    )
    op.create_index("ix_regions_splits_closed", "regions_splits", ["closed"])


def downgrade() -> None:
    op.drop_table("regions_splits")
    op.drop_table("regions_parts")
    op.drop_column("jobs", "part")
    op.drop_column("nodes", "region")
