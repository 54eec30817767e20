"""The moves that CES made of an application by itself in the last hour, and what they leave of its budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import select

from ces_common.db.move_tables import MoveRow
from ces_common.db.uow import ReadTx
from ces_common.messages.adjustments import HOUR_S, MOST_PAST, PastMove
from ces_manager.jobs.past_moves import in_vain, moved_again, pays_at

DID_NOT_PAY = 2.0
"""How often a move counts that did not pay, as in ``ces_core.adjustment.ledger``."""


def past_moves(tx: ReadTx, job: str, now: datetime) -> list[PastMove]:
    """In order of time."""
    since = now - timedelta(seconds=HOUR_S)
    query = select(MoveRow).where(MoveRow.job == job, MoveRow.began_at > since).order_by(MoveRow.id)
    rows = tx.session.scalars(query).all()[-MOST_PAST:]
    return [
        PastMove(ago_s=_ago_s(now, row), requests=row.requests or 0.0, paid=_paid(row, rows[i + 1 :], now))
        for i, row in enumerate(rows)
        if row.why is not None
    ]


def left_of(budget: float | None, moves: Sequence[PastMove]) -> float | None:
    """Of ``budget`` requests an hour; None where there is no limit."""
    if budget is None:
        return None
    return max(0.0, budget - sum(each.requests * (DID_NOT_PAY if each.paid is False else 1.0) for each in moves))


def _ago_s(now: datetime, row: MoveRow) -> float:
    """The clock may have been set back."""
    return max(0.0, (now - row.began_at).total_seconds())


def _paid(row: MoveRow, later: Sequence[MoveRow], now: datetime) -> bool | None:
    """None where that is not known yet."""
    if in_vain(row, later):
        return False
    pays = pays_at(row)
    return True if pays is None or now >= pays or moved_again(row, later) is not None else None
