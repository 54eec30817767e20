"""What was measured of malleable jobs: how far they are, and their speed at each size"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("speeds", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "speeds")
