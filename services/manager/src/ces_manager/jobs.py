"""What users do with jobs."""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy import select
from ulid import ULID

from ces_common.db.tables import JobRow
from ces_common.db.uow import WriteTx
from ces_common.jobfile import DEFAULT_TENANT, JobFile
from ces_common.queuefile import QueueFile
from ces_common.states import JOB_OVER, JobState
from ces_manager import lifecycle
from ces_manager.changes import change, emit_job, job_row
from ces_manager.datasets import check_inputs
from ces_manager.errors import Conflict, Invalid
from ces_manager.tenants import check_tenant

KEY_LENGTH = 255
ANYBODY = QueueFile()


def submit_job(tx: WriteTx, jobfile: JobFile, idempotency_key: str | None = None, queue: QueueFile = ANYBODY) -> JobRow:
    """A new queued job; with a key that was used before for the same job file, the job it made then.

    Raises Conflict where the key came with another job file, Invalid for a key that is none, for a tenant that there
    is not, and for data that no node offers."""
    body_hash = _hash(jobfile)
    if idempotency_key is not None:
        if not (0 < len(idempotency_key) <= KEY_LENGTH and idempotency_key.isprintable()):
            raise Invalid("Idempotency-Key", f"must have 1 to {KEY_LENGTH} printable characters")
        known = tx.session.scalars(select(JobRow).where(JobRow.idempotency_key == idempotency_key)).one_or_none()
        if known is not None:
            if known.body_hash != body_hash:
                raise Conflict("this Idempotency-Key came with another job before; use a new one")
            return known
    check_tenant(queue, jobfile)
    check_inputs(tx, jobfile)
    row = JobRow(
        id=str(ULID.from_datetime(tx.now)),
        name=jobfile.name,
        priority=jobfile.priority,
        tenant=jobfile.tenant,
        expected_s=jobfile.duration,
        preemption=jobfile.preemption,
        spec=jobfile,
        restart=jobfile.restart,
        disconnect=jobfile.disconnect,
        tasks=jobfile.expand_tasks(),
        flows=jobfile.expand_flows(),
        state=JobState.QUEUED,
        state_since=tx.now,
        late=0,
        live=True,
        attempt=1,
        restarts=0,
        submitted_at=tx.now,
        idempotency_key=idempotency_key,
        body_hash=body_hash,
        version=tx.version,
    )
    tx.session.add(row)
    emit_job(tx, row, None)
    return row


def _hash(jobfile: JobFile) -> str:
    """Of what it says. Some fields came later than the others: a job file that says nothing there has the hash that it
    had before."""
    left_out: dict[str, bool | set[str]] = {}
    if not jobfile.flows.inputs:
        left_out["flows"] = {"inputs"}
    if jobfile.tenant == DEFAULT_TENANT:
        left_out["tenant"] = True
    if jobfile.duration is None:
        left_out["duration"] = True
    if jobfile.preemption == "stop":
        left_out["preemption"] = True
    return sha256(jobfile.model_dump_json(exclude=left_out).encode()).hexdigest()


def cancel_job(tx: WriteTx, job: str) -> JobRow:
    """Ends it; its workers are stopped. A job that is over stays as it is. Raises NotFound."""
    row = job_row(tx, job)
    change(tx, row, lambda course: lifecycle.cancel(course, "cancelled by the user"))
    return row


def pause_job(tx: WriteTx, job: str) -> JobRow:
    """Raises NotFound; Conflict where it does not run."""
    return _switch(tx, job, JobState.RUNNING, JobState.PAUSED)


def resume_job(tx: WriteTx, job: str) -> JobRow:
    """Raises NotFound; Conflict where it is not paused."""
    return _switch(tx, job, JobState.PAUSED, JobState.RUNNING)


def _switch(tx: WriteTx, job: str, before: JobState, after: JobState) -> JobRow:
    row = job_row(tx, job)
    if row.state is after:
        return row
    if row.state is not before:
        if row.state is JobState.SUSPENDED:
            raise Conflict(
                f"job {row.name} is suspended for a more urgent job; it goes on by itself as soon as there is room"
            )
        over = " for good" if row.state in JOB_OVER else ""
        raise Conflict(f"job {row.name} is {row.state.value}{over}; only a {before.value} job can become {after.value}")
    change(tx, row, lambda course: course.move(after))
    return row
