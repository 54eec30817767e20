"""The tables of jobs that run in another region than they were submitted to. Times are UTC."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Boolean, ForeignKey, Integer, String, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import ID, Base
from ces_common.db.types import Json, UtcTime
from ces_common.messages.pieces import Place
from ces_common.messages.split import PartState


class AwayRow(Base):
    """At home, of a job that may run elsewhere. Once it was decided: ``region`` and ``remote``, the job's id there, of
    which ``attempt``; ``committed``: that region has said so, if only once; ``forgotten``: it has said since that it
    holds it still, and is told again; ``remote_state``: what it said last; ``unknown_since``: since when it does not
    answer; ``closed``: nothing more is asked of it. ``epoch``: of this database, in which it is known whether the job
    has left; in another one that is asked first. ``remote_epoch``: of the database of ``region``, as it last spoke of
    the job. ``not_taken``: why other regions took it not, by region. ``decided_at`` and ``committed_at``: when
    each of them first was so."""

    __tablename__ = "regions_away"
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    attempt: Mapped[int | None] = mapped_column(Integer)
    region: Mapped[str | None] = mapped_column(String(16))
    remote: Mapped[str | None] = mapped_column(ID)
    committed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    forgotten: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    closed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false(), index=True)
    remote_state: Mapped[str | None] = mapped_column(String(16))
    epoch: Mapped[str | None] = mapped_column(String(36))
    remote_epoch: Mapped[str | None] = mapped_column(String(128))
    not_taken: Mapped[dict[str, str] | None] = mapped_column(Json(dict[str, str]))
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


class PartRow(Base):
    """Where it runs, a part of a job that is split over regions: ``home``, and how it is called there. Until it is
    ``committed`` it keeps its place and is released at ``hold_until``; until it is ``started`` it starts nothing.
    ``ready``: the attempt whose network is in place and waits for that."""

    __tablename__ = "regions_parts"
    __table_args__ = (UniqueConstraint("home", "home_job", "home_attempt", "part"),)
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    home: Mapped[str] = mapped_column(String(16))
    home_job: Mapped[str] = mapped_column(String(128))
    home_attempt: Mapped[int] = mapped_column(Integer)
    part: Mapped[int] = mapped_column(Integer)
    committed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false(), index=True)
    started: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    hold_until: Mapped[datetime] = mapped_column(UtcTime)
    ready: Mapped[int | None] = mapped_column(Integer)


class SplitRow(Base):
    """At home, of a job that is split over regions, once that was decided. ``places``: where its tasks are reached;
    ``unknown_since``: since when one of the regions does not answer; ``closed``: nothing more is asked of any."""

    __tablename__ = "regions_splits"
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    attempt: Mapped[int] = mapped_column(Integer)
    parts: Mapped[list[PartState]] = mapped_column(Json(list[PartState]))
    places: Mapped[list[Place]] = mapped_column(Json(list[Place]))
    closed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false(), index=True)
    unknown_since: Mapped[datetime | None] = mapped_column(UtcTime)
