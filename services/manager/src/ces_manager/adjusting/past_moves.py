"""The moves that CES made of an application by itself in the last hour, and what they leave of its budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import select

from ces_common.db.move_tables import MoveRow
from ces_common.db.uow import ReadTx
from ces_common.messages.adjustments import HOUR_S, MOST_PAST, PastMove
from ces_common.task_move import MoveState

DID_NOT_PAY = 2.0
"""How often a move counts that did not pay, as in ``ces_core.adjustment.ledger``."""
CAME_TO_NOTHING = (MoveState.KEPT, MoveState.FAILED)


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
    """A move pays for its disturbance unless it came to nothing, or the task's next move came before it had: after the
    seconds in which its gain, as it was expected, makes up for it."""
    if row.state in CAME_TO_NOTHING:
        return False
    pays_at = row.began_at + timedelta(seconds=row.pays_after_s or 0.0)
    again = next((each for each in later if each.task == row.task), None)
    if again is not None:
        return again.began_at >= pays_at
    return True if now >= pays_at else None
