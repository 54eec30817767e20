"""A scheduler's proposals for flows of jobs that have their place: commit all of a revision or none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ces_common.db.tables import JobRow, ReservationRow
from ces_common.db.uow import WriteTx
from ces_common.messages.events import FlowPlan, JobRevision, RevisionProposed, RevisionRejected
from ces_common.states import JOB_PLACED, JobState
from ces_manager.capacity import FlowChange, hops, revision_misfit
from ces_manager.holding import emit_revised, free_links, held_flows, take_links
from ces_manager.room import room_for

Held = Mapping[tuple[str, str], ReservationRow]  # by the flow's ends


class _Refused(Exception):
    """Why a revision cannot be committed."""


class _Stale(_Refused):
    """A job has changed since the version that the revision was made from."""


@dataclass(frozen=True)
class _Part:
    """One job's part of a revision: its row, all that its flows hold, and what shall change."""

    job: JobRow
    held: Held
    flows: Sequence[FlowPlan]


def commit_revision(tx: WriteTx, revision: RevisionProposed) -> str | None:
    """Make a revision true where all of it fits what is committed now; otherwise reject it, with the reason, which is
    returned. A job that has changed since the version that the revision was made from is left to another one."""
    try:
        parts = [_part(tx, asked, revision.version) for asked in revision.jobs]
        if len({part.job.id for part in parts}) != len(parts):
            raise _Refused("it names a job twice")
        reason = _misfit(tx, parts)
        if reason is not None:
            raise _Refused(reason)
    except _Refused as error:
        rejected = RevisionRejected(revision=revision.revision, reason=str(error), stale=isinstance(error, _Stale))
        tx.emit("revision", "rejected", revision.revision, rejected)
        return rejected.reason
    for part in parts:
        _commit(tx, part, revision)
    return None


def _part(tx: WriteTx, asked: JobRevision, version: int) -> _Part:
    row = tx.session.get(JobRow, asked.job) if len(asked.job) <= 26 else None
    if row is None:
        raise _Stale(f"no job {asked.job}")
    if row.state not in JOB_PLACED:
        raise _Stale(f"job {row.name} is {row.state.value} and has no place")
    if row.state is JobState.SUSPENDED:
        raise _Stale(f"job {row.name} is suspended: its flows have nothing until it goes on")
    if row.attempt != asked.attempt:
        raise _Stale(f"job {row.name} is at attempt {row.attempt}, the revision is for {asked.attempt}")
    if row.version > version:
        raise _Stale(f"job {row.name} has changed since version {version}")
    held = {(flow.src, flow.dst): flow for flow in held_flows(tx, row)}
    named = [(flow.src, flow.dst) for flow in asked.flows]
    if len(set(named)) != len(named):
        raise _Refused(f"it names a flow of job {row.name} twice")
    for src, dst in named:
        if (src, dst) not in held:
            raise _Refused(f"job {row.name} has no flow {src} -> {dst}")
    return _Part(row, held, asked.flows)


def _misfit(tx: WriteTx, parts: Sequence[_Part]) -> str | None:
    changes = []
    for part in parts:
        for flow in part.flows:
            row = part.held[flow.src, flow.dst]
            held = FlowPlan(src=row.src, dst=row.dst, bandwidth=row.bandwidth, path=row.path)
            changes.append(FlowChange(held, flow, row.min, row.max))
    paths = [path for change in changes for path in (change.held.path, change.given.path)]
    nodes = {node for path in paths for node in path}
    return revision_misfit(changes, room_for(tx, nodes, {hop for path in paths for hop in hops(path)}))


def _commit(tx: WriteTx, part: _Part, revision: RevisionProposed) -> None:
    """Only reservations and shares of links change: workers, addresses and flow numbers are the same as before."""
    rows = []
    for flow in part.flows:
        row = part.held[flow.src, flow.dst]
        row.bandwidth, row.path = flow.bandwidth, flow.path
        rows.append(row)
    free_links(tx, rows)
    take_links(tx, rows)
    part.job.version = tx.version
    emit_revised(tx, part.job, revision.revision, revision.cause, rows, part.held.values())
