"""The manager's state for the scheduler and the controllers: all of it, or what changed since a version."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import undefer_group

from ces_common.db.tables import EXPANDED, JobRow, LinkRow, MediumRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.messages.queries import SnapshotQuery
from ces_common.messages.records import LinkRecord, MediumRecord, NodeRecord, Snapshot, Topology
from ces_manager.jobs.records import job_records


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


def node_record(row: NodeRow) -> NodeRecord:
    return NodeRecord.model_validate(row, from_attributes=True)


def link_record(row: LinkRow) -> LinkRecord:
    return LinkRecord.model_validate(row, from_attributes=True)
