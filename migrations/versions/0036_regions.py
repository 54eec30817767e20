"""Jobs that run in another region than they were submitted to"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("region", sa.String(16), nullable=True))
    op.create_table(
        "regions_away",
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("region", sa.String(16), nullable=True),
        sa.Column("remote", sa.String(26), nullable=True),
        sa.Column("committed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("closed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("remote_state", sa.String(16), nullable=True),
        sa.Column("unknown_since", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_regions_away_job_jobs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", name="pk_regions_away"),
    )
    op.create_index("ix_regions_away_closed", "regions_away", ["closed"])
    op.create_table(
        "regions_guests",
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("home", sa.String(16), nullable=False),
        sa.Column("home_job", sa.String(128), nullable=False),
        sa.Column("home_attempt", sa.Integer(), nullable=False),
        sa.Column("committed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("hold_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ready", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_regions_guests_job_jobs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", name="pk_regions_guests"),
        sa.UniqueConstraint("home", "home_job", "home_attempt", name="uq_regions_guests_home_home_job_home_attempt"),
    )
    op.create_index("ix_regions_guests_committed", "regions_guests", ["committed"])


def downgrade() -> None:
    op.drop_table("regions_guests")
    op.drop_table("regions_away")
    op.drop_column("jobs", "region")
