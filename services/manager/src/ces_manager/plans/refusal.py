"""A scheduler's refusals: why a waiting job has no plan yet."""

from __future__ import annotations

from ces_common.db.uow import WriteTx
from ces_common.messages.events import JobWaiting, PlanRefused
from ces_common.states import JOB_WAITS
from ces_manager.jobs.transitions import find_job
from ces_manager.queue.status import with_holder_names, without_rank


def note_refusal(tx: WriteTx, refused: PlanRefused) -> None:
    """Store why the scheduler found no place, and the job's queue status, where either has changed."""
    row = find_job(tx, refused.job)
    if row is None or row.state not in JOB_WAITS or row.attempt != refused.attempt:
        return
    if row.waiting == refused.reason and without_rank(row.queue_status) == without_rank(refused.queue_status):
        return
    row.waiting, row.queue_status = refused.reason, refused.queue_status
    row.version = tx.version
    told = [] if refused.queue_status is None else [refused.queue_status]
    queue_status = next(iter(with_holder_names(tx, told, [row.tenant])), None)
    waiting = JobWaiting(job=row.id, name=row.name, reason=refused.reason, queue_status=queue_status)
    tx.emit("job", "waiting", row.id, waiting, job=row.id)
