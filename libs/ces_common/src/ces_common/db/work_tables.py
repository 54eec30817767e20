"""What finished jobs have taught of the work that they do. Written now and then, without the version lock. Times are
UTC."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import Base
from ces_common.db.types import Json, UtcTime
from ces_common.messages.work import LearnedWork


class LearnedWorkRow(Base):
    """Of one group of tasks of a tenant's jobs of one name."""

    __tablename__ = "learned_work"
    tenant: Mapped[str] = mapped_column(String(63), primary_key=True)
    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    task_group: Mapped[str] = mapped_column(String(80), primary_key=True)
    learned: Mapped[LearnedWork] = mapped_column(Json(LearnedWork))
    learned_at: Mapped[datetime] = mapped_column(UtcTime, index=True)
