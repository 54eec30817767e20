"""Submission of a job: a new row, or the one that the same request made before."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from sqlalchemy import select
from ulid import ULID

from ces_common.db.region_tables import AwayRow
from ces_common.db.tables import JobRow
from ces_common.db.uow import WriteTx
from ces_common.disconnect import STOP
from ces_common.jobfile import JobFile, Restart, TaskGroup
from ces_common.queuefile import QueueFile
from ces_common.states import JobState
from ces_manager.errors import Conflict, Invalid
from ces_manager.jobs.admission import (
    check_inputs,
    check_room,
    check_secrets,
    check_tasks,
    check_tenant,
    check_users,
    due_at,
)
from ces_manager.jobs.job_events import emit_job
from ces_manager.jobs.pieces import Written

KEY_LENGTH = 255
ANYBODY = QueueFile()
FIRST_FIELDS = {"name", "priority", "tasks", "flows", "restart", "disconnect"}


def submit_job(
    tx: WriteTx,
    jobfile: JobFile,
    idempotency_key: str | None = None,
    queue: QueueFile = ANYBODY,
    traceparent: str | None = None,
    written: Written | None = None,
) -> JobRow:
    """Add a queued job. A key that came with the same job file before returns the job that it made then.
    ``traceparent``: the context of the request, where the job is to be traced. ``written``: the part of the job that is
    to run here, of one that is split over regions; whatever ends it, its home decides what becomes of the job.

    Raises Conflict where the key came with another job file; Invalid for a malformed key, an unknown tenant, data that
    no node offers, a secret that the tenant does not have, a user whom no node covers, a command that decides what CES
    does, and a deadline that is past; Overloaded where too many jobs of the tenant wait."""
    body_hash, key = _hash(jobfile), None
    if idempotency_key is not None:
        if not (0 < len(idempotency_key) <= KEY_LENGTH and idempotency_key.isprintable()):
            raise Invalid("Idempotency-Key", f"must have 1 to {KEY_LENGTH} printable characters")
        key = of_tenant(jobfile.tenant, idempotency_key)
        # A manager of before keeps the key as it came; it may still run beside this one.
        kept = JobRow.idempotency_key.in_((key, idempotency_key))
        known = tx.session.scalars(select(JobRow).where(kept, JobRow.tenant == jobfile.tenant)).first()
        if known is not None:
            if known.body_hash not in (body_hash, _former_hash(jobfile)):
                raise Conflict("this Idempotency-Key came with another job before; use a new one")
            return known
    check_tenant(queue, jobfile.tenant)
    check_room(tx, queue, jobfile)
    check_inputs(tx, jobfile)
    check_secrets(tx, jobfile)
    check_users(tx, jobfile)
    check_tasks(jobfile)
    initial = jobfile if jobfile.elastic is None else jobfile.at_size(jobfile.elastic.smallest)
    if written is None:
        tasks, flows, restart = initial.expand_tasks(), initial.expand_flows(), jobfile.restart
    else:
        tasks, flows, restart = written.tasks, written.flows, Restart(policy="never")
    row = JobRow(
        id=str(ULID.from_datetime(tx.now)),
        name=jobfile.name,
        priority=jobfile.priority,
        tenant=jobfile.tenant,
        expected_s=jobfile.duration,
        deadline_at=due_at(tx.now, jobfile),
        preemption=jobfile.preemption,
        spec=jobfile,
        restart=restart,
        disconnect=jobfile.disconnect,
        tasks=tasks,
        flows=flows,
        part=None if written is None else written.part,
        size=None if jobfile.elastic is None else jobfile.elastic.smallest,
        adjusts=jobfile.adjust is not None,
        state=JobState.QUEUED,
        state_since=tx.now,
        late=0,
        live=True,
        attempt=1,
        restarts=0,
        submitted_at=tx.now,
        idempotency_key=key,
        body_hash=body_hash,
        traceparent=traceparent,
        version=tx.version,
    )
    tx.session.add(row)
    if jobfile.regions:
        tx.session.flush()
        tx.session.add(AwayRow(job=row.id, epoch=tx.cluster().epoch))
    emit_job(tx, row, None)
    return row


def of_tenant(tenant: str, idempotency_key: str) -> str:
    """How a key is kept (and by migration 0016): what one tenant sends says nothing to another, and hinders none."""
    return sha256(f"{tenant}\0{idempotency_key}".encode()).hexdigest()


def _former_hash(jobfile: JobFile) -> str | None:
    """As a manager made it for whom a file without ``disconnect`` meant ``stop``; None where the file says it."""
    if "disconnect" in jobfile.model_fields_set:
        return None
    return _hash(jobfile.model_copy(update={"disconnect": STOP}))


def _later_of(group: TaskGroup) -> dict[str, Any]:
    later = {name: True for name in ("secrets", "work") if not getattr(group, name)}
    constraints = {name: True for name in ("gpu_model", "user") if not getattr(group.constraints, name)}
    return later | ({"constraints": constraints} if constraints else {})


def _hash(jobfile: JobFile) -> str:
    """The hash of a job file. A field that came later than the first ones, and has its default, is left out: a client
    may repeat a request across an upgrade."""
    left_out: dict[str, Any] = {
        name: True
        for name, field in JobFile.model_fields.items()
        if name not in FIRST_FIELDS and getattr(jobfile, name) == field.default
    }
    flows: dict[str, Any] = {} if jobfile.flows.inputs else {"inputs": True}
    if unsized := {i: {"message": True} for i, edge in enumerate(jobfile.flows.edges) if not edge.message}:
        flows["edges"] = unsized
    if flows:
        left_out["flows"] = flows
    if jobfile.elastic is not None and jobfile.elastic.cpu is None:
        left_out["elastic"] = {"cpu"}
    left_out["tasks"] = {i: _later_of(group) for i, group in enumerate(jobfile.tasks)}
    return sha256(jobfile.model_dump_json(exclude=left_out).encode()).hexdigest()
