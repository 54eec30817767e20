"""The table of what the cluster was, beside its events."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import Base
from ces_common.db.types import UtcTime


class KeyframeRow(Base):
    """All of the cluster after the event numbered ``sequence``, compressed: from there events are replayed."""

    __tablename__ = "keyframes"
    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    time: Mapped[datetime] = mapped_column(UtcTime, index=True)
    body: Mapped[bytes] = mapped_column(LargeBinary)
