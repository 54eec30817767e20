"""Jobs, allocations and flows as the records that other services read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import select

from ces_common.db.tables import AllocationRow, JobRow, ReservationRow
from ces_common.db.uow import ReadTx
from ces_common.messages.records import AllocationRecord, FlowRecord, JobRecord, Moving, Resizing
from ces_common.states import JobState
from ces_manager.jobs.next_size import next_allocations, next_reservations
from ces_manager.jobs.spec import spec_fields
from ces_manager.jobs.task_moves import beside, flows_beside, move_of
from ces_manager.jobs.transitions import allocations_of


def job_records(tx: ReadTx, rows: Sequence[JobRow]) -> list[JobRecord]:
    """The jobs with what they ask for, hold and were given."""
    allocations, reservations = allocations_of(tx, rows), reservations_of(tx, rows)
    specs = spec_fields(tx, [row.id for row in rows], JobRecord)
    return [
        JobRecord.model_validate(
            {
                **specs[row.id],
                "id": row.id,
                "expected_s": row.expected_s,
                "deadline_at": row.deadline_at,
                "admitted": row.admitted_at is not None,
                "state": row.state,
                "attempt": row.attempt,
                "restarts": row.restarts,
                "reason": row.reason,
                "tasks": row.tasks,
                "flows": row.flows,
                "size": row.size,
                "spec": None if row.size is None else row.spec,
                "since": None if row.size is None else row.state_since,
                "resize_s": row.resize_s,
                "checkpoint_node": row.checkpoint_node,
                "checkpoints": row.checkpoints,
                "speeds": row.speeds,
                "resizing": _resizing(tx, row),
                "moving": _moving(tx, row),
                "allocations": [allocation_record(allocation) for allocation in allocations[row.id]],
                "reserved": [flow_record(flow) for flow in reservations[row.id]],
                "submitted_at": row.submitted_at,
                "started_at": row.placed_at,
                "ran_s": _ran_s(row),
                "traceparent": row.traceparent,
                "part": row.part,
                "version": row.version,
            }
        )
        for row in rows
    ]


def _resizing(tx: ReadTx, row: JobRow) -> Resizing | None:
    if row.next_size is None:
        return None
    return Resizing(
        size=row.next_size,
        tasks=row.spec.at_size(row.next_size).expand_tasks(),
        allocations=[allocation_record(allocation) for allocation in next_allocations(tx, row)],
        reserved=[flow_record(flow) for flow in next_reservations(tx, row)],
    )


def _moving(tx: ReadTx, row: JobRow) -> Moving | None:
    move = move_of(tx, row)
    if move is None:
        return None
    held = beside(tx, move)
    return Moving(
        move=move.id,
        state=move.state,
        task=move.task,
        beside=None if held is None else allocation_record(held),
        reserved=[flow_record(flow) for flow in flows_beside(tx, row.id)],
    )


def _ran_s(row: JobRow) -> float | None:
    if row.state is not JobState.SUSPENDED or row.placed_at is None:
        return None
    return (row.state_since - row.placed_at).total_seconds()


def reservations_of(tx: ReadTx, jobs: Iterable[JobRow]) -> dict[str, list[ReservationRow]]:
    """The reservations of each job's present attempt, held or not."""
    ids = [row.id for row in jobs]
    found: dict[str, list[ReservationRow]] = defaultdict(list)
    if ids:
        query = select(ReservationRow).join(
            JobRow, (JobRow.id == ReservationRow.job) & (JobRow.attempt == ReservationRow.attempt)
        )
        for row in tx.session.scalars(query.where(ReservationRow.job.in_(ids)).order_by(ReservationRow.number)):
            found[row.job].append(row)
    return found


def allocation_record(row: AllocationRow) -> AllocationRecord:
    record = AllocationRecord.model_validate(row, from_attributes=True)
    return record.model_copy(update={"cpu": None}) if row.cpu_desired is None else record


def flow_record(row: ReservationRow) -> FlowRecord:
    return FlowRecord(
        number=row.number, src=row.src, dst=row.dst, min=row.min, max=row.max, rate=row.rate, path=row.path
    )
