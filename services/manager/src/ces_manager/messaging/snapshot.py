"""The manager's state for the scheduler and the controllers: all of it, or what changed since a version."""

from __future__ import annotations

from sqlalchemy import ColumnExpressionArgument, bindparam, select
from sqlalchemy.orm import undefer_group

from ces_common.db.tables import EXPANDED, JOB, NODE, JobRow, LinkRow, MediumRow, NodeRow, RemovalRow
from ces_common.db.uow import ReadTx
from ces_common.messages.records import (
    JobRecord,
    LinkRecord,
    MediumRecord,
    NodeRecord,
    Snapshot,
    SnapshotQuery,
    Topology,
)
from ces_common.scores import speeds_of
from ces_manager.jobs.records import job_records

KEPT = 500  # records
_CHANGED = select(JobRow.id, JobRow.version).where(JobRow.version > bindparam("since"))
_REMOVED = (
    select(RemovalRow.kind, RemovalRow.name).where(RemovalRow.version > bindparam("since")).order_by(RemovalRow.version)
)


class Snapshots:
    """What readers are told. Several ask for the same changes one after the other: the records of jobs that were told
    lately are kept, each good for its job's version. May be asked from several threads."""

    def __init__(self) -> None:
        self._kept: tuple[str, dict[str, JobRecord]] = ("", {})  # of this epoch, the latest told last

    def of(self, tx: ReadTx, query: SnapshotQuery) -> Snapshot:
        """All that counts now, or what changed since the version asked for."""
        cluster = tx.cluster()
        known = query.epoch == cluster.epoch and 0 < query.since <= cluster.version and query.since >= cluster.horizon
        removed = _removed(tx, query.since) if known else {}
        known = known and (query.removals or not removed)
        # Sorted here: asked to sort by name, SQLite would walk all rows in that order instead of the few new ones.
        nodes = select(NodeRow).where(NodeRow.version > query.since) if known else select(NodeRow)
        new_topology = not known or cluster.topology_version > query.since
        return Snapshot(
            epoch=cluster.epoch,
            version=cluster.version,
            full=not known,
            nodes=sorted((node_record(row) for row in tx.session.scalars(nodes)), key=lambda node: node.name),
            topology=topology(tx) if new_topology else None,
            jobs=self._changed(tx, cluster.epoch, query.since) if known else _records(tx, JobRow.live),
            removed_nodes=removed.get(NODE, []) if known else [],
            removed_jobs=removed.get(JOB, []) if known else [],
        )

    def _changed(self, tx: ReadTx, epoch: str, since: int) -> list[JobRecord]:
        of_epoch, kept = self._kept
        if of_epoch != epoch:
            kept = {}
        versions = dict(tx.session.execute(_CHANGED, {"since": since}).all())
        found = {job: kept[job] for job, version in versions.items() if job in kept and kept[job].version == version}
        missing = versions.keys() - found.keys()
        if len(missing) > KEPT:
            return _records(tx, JobRow.version > since)
        if missing:
            found |= {record.id: record for record in _records(tx, JobRow.id.in_(missing))}
        others = {job: record for job, record in kept.items() if job not in found}
        self._kept = epoch, dict(list((others | found).items())[-KEPT:])
        return [found[job] for job in sorted(found)]


def _removed(tx: ReadTx, since: int) -> dict[str, list[str]]:
    """By kind, what was there at that version and has been removed. A node may have come back since."""
    found: dict[str, list[str]] = {}
    for kind, name in tx.session.execute(_REMOVED, {"since": since}):
        found.setdefault(kind, []).append(name)
    return found


def _records(tx: ReadTx, which: ColumnExpressionArgument[bool]) -> list[JobRecord]:
    rows = tx.session.scalars(select(JobRow).options(undefer_group(EXPANDED)).where(which))
    return job_records(tx, sorted(rows, key=lambda job: job.id))


def topology(tx: ReadTx) -> Topology:
    links = tx.session.scalars(select(LinkRow).order_by(LinkRow.src, LinkRow.dst))
    media = tx.session.scalars(select(MediumRow).order_by(MediumRow.name))
    return Topology(
        version=tx.cluster().topology_version,
        links=[link_record(link) for link in links],
        media=[MediumRecord(name=medium.name, bandwidth=medium.bandwidth) for medium in media],
    )


def node_record(row: NodeRow) -> NodeRecord:
    record = NodeRecord.model_validate(row, from_attributes=True)
    return record if row.measured is None else record.model_copy(update={"speeds": speeds_of(row.measured)})


def link_record(row: LinkRow) -> LinkRecord:
    return LinkRecord.model_validate(row, from_attributes=True)
