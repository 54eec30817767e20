"""Whether a running job has anything to be adjusted for, and what is known of moving its tasks."""

from __future__ import annotations

from sqlalchemy import select

from ces_common.application import has_goals
from ces_common.db.move_tables import MoveRow
from ces_common.db.uow import ReadTx
from ces_common.states import JobState
from ces_common.task_move import MoveState
from ces_manager.errors import Conflict
from ces_manager.jobs.transitions import job_row

REMEMBERED = 64
"""Moves of a job, the latest ones."""
LONGEST_S = 3600.0
"""A move that took longer waited, say for its node, and tells nothing of how long the task stands still."""


def check_adjustable(tx: ReadTx, job: str) -> dict[str, float]:
    """Task -> how many seconds its last move took that succeeded. Raises NotFound, Conflict."""
    row = job_row(tx, job)
    if not row.spec.requests and row.spec.objective is None:
        raise Conflict(
            f"job {row.name} has no goals to be adjusted for: its file has neither `requests` nor `objective`; submit "
            "it with one of them"
        )
    if not has_goals(row.spec):
        raise Conflict(
            f"job {row.name} has no goals to be adjusted for: its file has no `requests`, and its `objective` weighs "
            "`balance` and `bandwidth` 0.5 each, as every job without one does; submit it with `requests` or with "
            "other weights"
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
    """From the commitment of a move on: a little longer than the task stood still. The clock may have been set back."""
    done = select(MoveRow).where(MoveRow.job == job, MoveRow.state == MoveState.DONE)
    newest = tx.session.scalars(done.order_by(MoveRow.id.desc()).limit(REMEMBERED)).all()
    took = ((row.task, max(0.0, (row.changed_at - row.began_at).total_seconds())) for row in reversed(newest))
    return {task: seconds for task, seconds in took if seconds <= LONGEST_S}
