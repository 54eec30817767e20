"""The events of a job that changes its state, and of its allocations."""

from __future__ import annotations

from ces_common.db.tables import AllocationRow, JobRow
from ces_common.db.uow import WriteTx
from ces_common.messages.events import AllocationChanged, JobChanged
from ces_common.states import AllocationState, JobState


def emit_job(tx: WriteTx, row: JobRow, previous: JobState | None) -> None:
    changed = JobChanged(
        job=row.id, name=row.name, attempt=row.attempt, previous=previous, state=row.state, reason=row.reason
    )
    tx.emit("job", row.state.value, row.id, changed, job=row.id, traceparent=row.traceparent)


def emit_allocation(tx: WriteTx, job: JobRow, row: AllocationRow, previous: AllocationState | None) -> None:
    changed = AllocationChanged(
        allocation=row.id,
        job=job.id,
        task=row.task,
        node=row.node,
        incarnation=row.incarnation,
        previous=previous,
        state=row.state,
        exit_code=row.exit_code,
        reason=row.reason,
    )
    tx.emit("allocation", row.state.value, row.id, changed, job=job.id, traceparent=job.traceparent)
