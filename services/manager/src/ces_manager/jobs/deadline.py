"""What a scheduler expects of jobs' deadlines: who is admitted, who is refused, and when each will have ended."""

from __future__ import annotations

from functools import partial

from ces_common.db.tables import JobRow
from ces_common.db.uow import WriteTx
from ces_common.messages.events import DeadlineJudged, DeadlineTold
from ces_common.states import JOB_OVER, JobState
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change, find_job
from ces_manager.text import storable


def note_judgement(tx: WriteTx, judged: DeadlineJudged) -> None:
    """Store when the job is expected to end, admit it, or end it where it is refused. Only a job that waits for its
    first plan can be refused, and only until it is admitted: a promise stands, whatever another scheduler says."""
    row = find_job(tx, judged.job)
    if row is None or row.deadline_at is None or row.attempt != judged.attempt or row.state in JOB_OVER:
        return
    if judged.refusal is not None:
        _refuse(tx, row, judged)
        return
    before = row.expected_end_at, row.admitted_at, row.miss_told
    new = row.expected_end_at is None and row.admitted_at is None and not row.miss_told
    if row.admitted_at is None and judged.kept and must_be_kept(row):
        row.admitted_at = tx.now
        new = True
    missed = not (judged.kept or row.miss_told) and (row.admitted_at is not None or not must_be_kept(row))
    row.expected_end_at = judged.end_at
    row.miss_told = row.miss_told or missed
    if before != (row.expected_end_at, row.admitted_at, row.miss_told):
        row.version = tx.version  # else nobody is told of what is the same
    if new or missed:
        _tell(tx, row, judged)


def must_be_kept(row: JobRow) -> bool:
    """Whether the job is refused rather than late."""
    return row.spec.deadline is not None and row.spec.deadline.policy == "refuse"


def _refuse(tx: WriteTx, row: JobRow, judged: DeadlineJudged) -> None:
    first = row.state is JobState.QUEUED and row.attempt == 1 and row.started_at is None
    if not first or row.admitted_at is not None or not must_be_kept(row) or judged.refusal is None:
        return
    row.expected_end_at = judged.end_at
    _tell(tx, row, judged)
    reason = storable(f"deadline: {judged.refusal.text}", lifecycle.MAX_REASON)
    change(tx, row, partial(lifecycle.fail, reason=reason))


def _tell(tx: WriteTx, row: JobRow, judged: DeadlineJudged) -> None:
    assert row.deadline_at is not None
    told = DeadlineTold(
        job=row.id,
        name=row.name,
        deadline_at=row.deadline_at,
        kept=judged.kept,
        end_at=judged.end_at,
        refusal=judged.refusal,
    )
    tx.emit("job", "deadline", row.id, told, job=row.id)
