"""Rows as the records that others read, and snapshots of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import undefer_group

from ces_common.db.tables import EXPANDED, AllocationRow, JobRow, LinkRow, MediumRow, NodeRow, ReservationRow
from ces_common.db.uow import ReadTx
from ces_common.messages.queries import SnapshotQuery
from ces_common.messages.records import (
    AllocationRecord,
    FlowRecord,
    JobRecord,
    LinkRecord,
    MediumRecord,
    NodeRecord,
    Snapshot,
    Topology,
)
from ces_common.states import JobState
from ces_manager.changes import allocations_of


def snapshot(tx: ReadTx, query: SnapshotQuery) -> Snapshot:
    """All that counts now, or what changed since the version asked for."""
    cluster = tx.cluster()
    known = query.epoch == cluster.epoch and 0 < query.since <= cluster.version and query.since >= cluster.horizon
    jobs, nodes = select(JobRow).options(undefer_group(EXPANDED)), select(NodeRow)
    if known:
        jobs, nodes = jobs.where(JobRow.version > query.since), nodes.where(NodeRow.version > query.since)
    else:
        jobs = jobs.where(JobRow.live)
    # Sorted here: asked to sort by name, SQLite would walk all rows in that order instead of the few new ones.
    new_topology = not known or cluster.topology_version > query.since
    return Snapshot(
        epoch=cluster.epoch,
        version=cluster.version,
        full=not known,
        nodes=sorted((node_record(row) for row in tx.session.scalars(nodes)), key=lambda node: node.name),
        topology=topology(tx) if new_topology else None,
        jobs=job_records(tx, sorted(tx.session.scalars(jobs), key=lambda job: job.id)),
    )


def topology(tx: ReadTx) -> Topology:
    links = tx.session.scalars(select(LinkRow).order_by(LinkRow.src, LinkRow.dst))
    media = tx.session.scalars(select(MediumRow).order_by(MediumRow.name))
    return Topology(
        version=tx.cluster().topology_version,
        links=[link_record(link) for link in links],
        media=[MediumRecord(name=medium.name, bandwidth=medium.bandwidth) for medium in media],
    )


def job_records(tx: ReadTx, rows: Sequence[JobRow]) -> list[JobRecord]:
    allocations, reservations = allocations_of(tx, rows), reservations_of(tx, rows)
    return [
        JobRecord.model_validate(
            {
                "id": row.id,
                "name": row.name,
                "priority": row.priority,
                "tenant": row.tenant,
                "expected_s": row.expected_s,
                "preemption": row.preemption,
                "state": row.state,
                "attempt": row.attempt,
                "restarts": row.restarts,
                "reason": row.reason,
                "disconnect": row.disconnect,
                "restart": row.restart,
                "tasks": row.tasks,
                "flows": row.flows,
                "allocations": [allocation_record(allocation) for allocation in allocations[row.id]],
                "reserved": [flow_record(flow) for flow in reservations[row.id]],
                "submitted_at": row.submitted_at,
                "started_at": row.placed_at,
                "ran_s": _ran_s(row),
                "version": row.version,
            }
        )
        for row in rows
    ]


def _ran_s(row: JobRow) -> float | None:
    if row.state is not JobState.SUSPENDED or row.placed_at is None:
        return None
    return (row.state_since - row.placed_at).total_seconds()


def reservations_of(tx: ReadTx, jobs: Iterable[JobRow]) -> dict[str, list[ReservationRow]]:
    """What the flows of each job's present attempt were given, held or not."""
    ids = [row.id for row in jobs]
    found: dict[str, list[ReservationRow]] = defaultdict(list)
    if ids:
        query = select(ReservationRow).join(
            JobRow, (JobRow.id == ReservationRow.job) & (JobRow.attempt == ReservationRow.attempt)
        )
        for row in tx.session.scalars(query.where(ReservationRow.job.in_(ids)).order_by(ReservationRow.number)):
            found[row.job].append(row)
    return found


def node_record(row: NodeRow) -> NodeRecord:
    return NodeRecord.model_validate(row, from_attributes=True)


def link_record(row: LinkRow) -> LinkRecord:
    return LinkRecord.model_validate(row, from_attributes=True)


def allocation_record(row: AllocationRow) -> AllocationRecord:
    return AllocationRecord(
        id=row.id,
        task=row.task,
        rank=row.rank,
        node=row.node,
        address=row.address,
        port=row.port,
        incarnation=row.incarnation,
        state=row.state,
        exit_code=row.exit_code,
        reason=row.reason,
        stopping_since=row.stopping_since,
    )


def flow_record(row: ReservationRow) -> FlowRecord:
    return FlowRecord(
        number=row.number, src=row.src, dst=row.dst, min=row.min, max=row.max, bandwidth=row.bandwidth, path=row.path
    )
