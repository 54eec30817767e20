"""In which history of each database a job that may leave is known, and why other regions took it not"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("regions_away", sa.Column("epoch", sa.String(36), nullable=True))
    op.add_column("regions_away", sa.Column("remote_epoch", sa.String(128), nullable=True))
    op.add_column("regions_away", sa.Column("not_taken", sa.Text(), nullable=True))
    op.execute("UPDATE regions_away SET epoch = (SELECT epoch FROM cluster)")


def downgrade() -> None:
    op.drop_column("regions_away", "not_taken")
    op.drop_column("regions_away", "remote_epoch")
    op.drop_column("regions_away", "epoch")
