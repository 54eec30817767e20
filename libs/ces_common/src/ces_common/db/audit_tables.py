"""The table of published audits. Times are UTC."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import ID, Base
from ces_common.db.types import Json, UtcTime
from ces_common.messages.audits import AuditOutcome, FindingView


class AuditRow(Base):
    """``shares``: tenant -> kind -> how many of the ``findings`` are about jobs of that tenant."""

    __tablename__ = "audits"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    published_at: Mapped[datetime] = mapped_column(UtcTime, index=True)
    published_by: Mapped[str] = mapped_column(String(128))
    outcome: Mapped[AuditOutcome] = mapped_column(Json(AuditOutcome))
    shares: Mapped[dict[str, dict[str, int]]] = mapped_column(Json(dict[str, dict[str, int]]))
    findings: Mapped[list[FindingView]] = mapped_column(Json(list[FindingView]), deferred=True)
