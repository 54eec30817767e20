"""Moves of a job's tasks that were made, the latest of them, and whether those that CES made by itself paid."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import select

from ces_common.db.move_tables import MoveRow
from ces_common.db.uow import ReadTx
from ces_common.messages.moves import MoveView
from ces_common.task_move import MoveState

CAME_TO_NOTHING = (MoveState.KEPT, MoveState.FAILED)
SHOWN = 10


def latest_moves(tx: ReadTx, job: str) -> list[MoveView]:
    """The newest first."""
    query = select(MoveRow).where(MoveRow.job == job).order_by(MoveRow.id.desc()).limit(SHOWN)
    rows = tx.session.scalars(query).all()[::-1]
    found = [
        MoveView.model_validate(row, from_attributes=True).model_copy(
            update={"pays_at": pays_at(row), "in_vain": in_vain(row, rows[i + 1 :])}
        )
        for i, row in enumerate(rows)
    ]
    return found[::-1]


def pays_at(row: MoveRow) -> datetime | None:
    """When the gain of a move that CES made by itself, as it was expected, has made up for the disturbance."""
    return None if row.pays_after_s is None else row.began_at + timedelta(seconds=row.pays_after_s)


def in_vain(row: MoveRow, later: Sequence[MoveRow]) -> bool:
    """Whether such a move came to nothing, or its task moved again before it had paid. ``later``: in order of time."""
    pays, again = pays_at(row), moved_again(row, later)
    return pays is not None and (row.state in CAME_TO_NOTHING or (again is not None and again.began_at < pays))


def moved_again(row: MoveRow, later: Sequence[MoveRow]) -> MoveRow | None:
    """The next move that took its task somewhere else, or may do so yet."""
    return next((each for each in later if each.task == row.task and each.state not in CAME_TO_NOTHING), None)
