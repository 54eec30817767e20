"""The tables of energy, in microjoules. Apart from nodes and allocations: written in bulk now and then, without the
version lock. Times are UTC."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import ID, Base
from ces_common.db.types import UtcTime


class NodeEnergyRow(Base):
    """What a node has used in all, by how that is known. Of what its agent, since its start ``boot``, has told,
    ``counted`` is in these sums. ``jobs_measured``, ``jobs_modelled``: what of them was attributed to allocations, also
    to those that are kept no more. ``counted_at``: when that was written, and ``meter``: what told it then."""

    __tablename__ = "node_energy"
    node: Mapped[str] = mapped_column(ForeignKey("nodes.name", ondelete="CASCADE"), primary_key=True)
    boot: Mapped[str] = mapped_column(String(64))
    counted: Mapped[int] = mapped_column(BigInteger)
    measured: Mapped[int] = mapped_column(BigInteger)
    modelled: Mapped[int] = mapped_column(BigInteger)
    jobs_measured: Mapped[int] = mapped_column(BigInteger)
    jobs_modelled: Mapped[int] = mapped_column(BigInteger)
    meter: Mapped[str] = mapped_column(String(16))
    counted_at: Mapped[datetime] = mapped_column(UtcTime)


class AllocationEnergyRow(Base):
    """The same of what was attributed to an allocation."""

    __tablename__ = "allocation_energy"
    allocation: Mapped[str] = mapped_column(ID, ForeignKey("allocations.id", ondelete="CASCADE"), primary_key=True)
    boot: Mapped[str] = mapped_column(String(64))
    counted: Mapped[int] = mapped_column(BigInteger)
    measured: Mapped[int] = mapped_column(BigInteger)
    modelled: Mapped[int] = mapped_column(BigInteger)
