"""Whether a running job has anything to be adjusted for, and what is known of moving its tasks."""

from __future__ import annotations

from sqlalchemy import select

from ces_common.db.move_tables import MoveRow
from ces_common.db.uow import ReadTx
from ces_common.states import JobState
from ces_common.task_move import MoveState
from ces_manager.errors import Conflict
from ces_manager.jobs.transitions import job_row

REMEMBERED = 64
"""Moves of a job, the latest ones."""


def check_adjustable(tx: ReadTx, job: str) -> dict[str, float]:
    """Task -> how many seconds its last move took that succeeded. Raises NotFound, Conflict."""
    row = job_row(tx, job)
    if not row.spec.requests and row.spec.objective is None:
        raise Conflict(
            f"job {row.name} has no goals to be adjusted for: its file has neither `requests` nor `objective`; submit "
            "it with one of them"
        )
    if row.state is not JobState.RUNNING:
        raise Conflict(f"job {row.name} is {row.state.value}; only a running job is adjusted")
    if row.part is not None:
        raise Conflict(f"job {row.name} is split over regions; it is not adjusted")
    if row.size is not None:
        raise Conflict(f"job {row.name} is malleable (`elastic`); it is adjusted by its size")
    if row.move is not None:
        raise Conflict(f"a task of job {row.name} is being moved; try again when it is there")
    return _took(tx, job)


def _took(tx: ReadTx, job: str) -> dict[str, float]:
    """From the commitment of a move on: a little longer than the task stood still."""
    done = select(MoveRow).where(MoveRow.job == job, MoveRow.state == MoveState.DONE)
    newest = tx.session.scalars(done.order_by(MoveRow.id.desc()).limit(REMEMBERED)).all()
    return {row.task: (row.changed_at - row.began_at).total_seconds() for row in reversed(newest)}
