"""The tables of what was learned of how often nodes and links are there. Written now and then, without the version
lock."""

from __future__ import annotations

from sqlalchemy import Float, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import Base


class NodeAvailabilityRow(Base):
    """Seconds for which it was there and away, older ones counting less; ``least``: the 5 % quantile of its
    availability."""

    __tablename__ = "node_availability"
    node: Mapped[str] = mapped_column(ForeignKey("nodes.name", ondelete="CASCADE"), primary_key=True)
    up_s: Mapped[float] = mapped_column(Float)
    down_s: Mapped[float] = mapped_column(Float)
    least: Mapped[float] = mapped_column(Float)


class LinkAvailabilityRow(Base):
    """The same of a link. No foreign key: another topology file makes all links anew."""

    __tablename__ = "link_availability"
    src: Mapped[str] = mapped_column(String(63), primary_key=True)
    dst: Mapped[str] = mapped_column(String(63), primary_key=True)
    up_s: Mapped[float] = mapped_column(Float)
    down_s: Mapped[float] = mapped_column(Float)
    least: Mapped[float] = mapped_column(Float)
