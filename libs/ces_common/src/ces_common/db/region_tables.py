"""The tables of jobs that run in another region than they were submitted to. Times are UTC."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Boolean, ForeignKey, Integer, String, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import ID, Base
from ces_common.db.types import UtcTime


class AwayRow(Base):
    """At home, of a job that may run elsewhere. Once it was decided: ``region`` and ``remote``, the job's id there, of
    which ``attempt``; ``committed``: that region has said so, if only once; ``forgotten``: it has said since that it
    holds it still, and is told again; ``remote_state``: what it said last; ``unknown_since``: since when it does not
    answer; ``closed``: nothing more is asked of it. ``decided_at`` and ``committed_at``: when each of them first was
    so."""

    __tablename__ = "regions_away"
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    attempt: Mapped[int | None] = mapped_column(Integer)
    region: Mapped[str | None] = mapped_column(String(16))
    remote: Mapped[str | None] = mapped_column(ID)
    committed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    forgotten: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    closed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false(), index=True)
    remote_state: Mapped[str | None] = mapped_column(String(16))
    unknown_since: Mapped[datetime | None] = mapped_column(UtcTime)
    decided_at: Mapped[datetime | None] = mapped_column(UtcTime)
    committed_at: Mapped[datetime | None] = mapped_column(UtcTime)


class GuestRow(Base):
    """Where it runs, of a job of another region: ``home``, and how it is called there. Until it is ``committed`` it
    keeps its place, starts nothing, and is released at ``hold_until``. ``ready``: the attempt whose network is in place
    and waits for that."""

    __tablename__ = "regions_guests"
    __table_args__ = (UniqueConstraint("home", "home_job", "home_attempt"),)
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    home: Mapped[str] = mapped_column(String(16))
    home_job: Mapped[str] = mapped_column(String(128))
    home_attempt: Mapped[int] = mapped_column(Integer)
    committed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false(), index=True)
    hold_until: Mapped[datetime] = mapped_column(UtcTime)
    ready: Mapped[int | None] = mapped_column(Integer)
