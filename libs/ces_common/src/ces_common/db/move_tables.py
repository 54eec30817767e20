"""The tables of moves of single tasks, and of what CES last looked at applications for. Times are UTC."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Float, ForeignKey, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from ces_common.db.tables import ID, Base
from ces_common.db.types import State, UtcTime
from ces_common.task_move import MoveKind, MoveState


class MoveRow(Base):
    """A task on its way from node ``source`` to node ``destination``, and those that are over as history. ``old``: the
    allocation that it leaves; ``new``: the one that it is to have; ``back``: the one in which it starts again at the
    source where the destination fails. Of the latter two, and of flows, what is not in use now is of attempt 0: the
    task's present allocation is the only one of its job's attempt. ``reason``: why it came to nothing. ``why``,
    ``requests``, ``pays_after_s``: of a move that CES made by itself, what it was made for, the requests that fell into
    it, and for how many seconds its gain has to last to make up for them."""

    __tablename__ = "moves"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    attempt: Mapped[int] = mapped_column(Integer)
    task: Mapped[str] = mapped_column(String(80))
    kind: Mapped[MoveKind] = mapped_column(State(MoveKind))
    state: Mapped[MoveState] = mapped_column(State(MoveState), index=True)
    source: Mapped[str] = mapped_column(String(63))
    destination: Mapped[str] = mapped_column(String(63))
    old: Mapped[str] = mapped_column(ID)
    new: Mapped[str] = mapped_column(ID)
    back: Mapped[str] = mapped_column(ID)
    began_at: Mapped[datetime] = mapped_column(UtcTime)
    changed_at: Mapped[datetime] = mapped_column(UtcTime)
    reason: Mapped[str | None] = mapped_column(Text)
    why: Mapped[str | None] = mapped_column(Text)
    requests: Mapped[float | None] = mapped_column(Float)
    pays_after_s: Mapped[float | None] = mapped_column(Float)


class LastLookRow(Base):
    """When CES last looked at an application that it may change by itself, why, and what came of it. ``left``: of its
    budget then, after what was done."""

    __tablename__ = "last_looks"
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    looked_at: Mapped[datetime] = mapped_column(UtcTime)
    why: Mapped[str] = mapped_column(Text)
    outcome: Mapped[str] = mapped_column(Text)
    left: Mapped[float | None] = mapped_column(Float)
