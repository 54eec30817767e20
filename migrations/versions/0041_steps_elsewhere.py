"""When a job was decided to run in another region, and when that one first said that it is committed"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0039"
branch_labels = None
depends_on = None
_COLUMNS = ("decided_at", "committed_at")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column("regions_away", sa.Column(name, sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("regions_away", name)
