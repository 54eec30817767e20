"""Commit of a proposed revision, new paths and rates for flows of placed jobs: all of it or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ces_common.db.tables import JobRow, ReservationRow
from ces_common.db.uow import WriteTx
from ces_common.messages.plans import FlowPlan, JobRevision, RevisionProposed, RevisionRejected
from ces_common.states import JOB_PLACED, JobState
from ces_manager.jobs.link_shares import release_links, reserve_links
from ces_manager.plans.feasibility import FlowChange, revision_misfit
from ces_manager.plans.proposal import Refused, Stale, job_at
from ces_manager.plans.reservations import emit_revised, held_flows
from ces_manager.plans.residual import residual_of

Held = Mapping[tuple[str, str], ReservationRow]  # by the flow's ends


@dataclass(frozen=True)
class _Part:
    """One job's part of a revision: its row, all its held flows, and the changes."""

    job: JobRow
    held: Held
    flows: Sequence[FlowPlan]


def commit_revision(tx: WriteTx, revision: RevisionProposed) -> str | None:
    """Commit a revision that fits the residual capacity; reject any other, and return the reason. One made from a
    version before a job's last change is rejected as stale."""
    try:
        parts = [_part(tx, asked, revision.version) for asked in revision.jobs]
        if len({part.job.id for part in parts}) != len(parts):
            raise Refused("it names a job twice")
        reason = _misfit(tx, parts)
        if reason is not None:
            raise Refused(reason)
    except Refused as error:
        rejected = RevisionRejected(revision=revision.revision, reason=str(error), stale=isinstance(error, Stale))
        tx.emit("revision", "rejected", revision.revision, rejected)
        return rejected.reason
    for part in parts:
        _commit(tx, part, revision)
    return None


def _part(tx: WriteTx, asked: JobRevision, version: int) -> _Part:
    row = job_at(tx, asked.job, asked.attempt, version)
    if row.state not in JOB_PLACED:
        raise Stale(f"job {row.name} is {row.state.value} and has no place")
    if row.state is JobState.SUSPENDED:
        raise Stale(f"job {row.name} is suspended: its flows have nothing until it goes on")
    if row.next_size is not None:
        raise Stale(f"job {row.name} goes to another size")
    if row.move is not None:
        raise Stale(f"a task of job {row.name} is being moved")
    held = {(flow.src, flow.dst): flow for flow in held_flows(tx, row)}
    ends = [(flow.src, flow.dst) for flow in asked.flows]
    if len(set(ends)) != len(ends):
        raise Refused(f"it names a flow of job {row.name} twice")
    for src, dst in ends:
        if (src, dst) not in held:
            raise Refused(f"job {row.name} has no flow {src} -> {dst}")
    return _Part(row, held, asked.flows)


def _misfit(tx: WriteTx, parts: Sequence[_Part]) -> str | None:
    changes = []
    for part in parts:
        for flow in part.flows:
            row = part.held[flow.src, flow.dst]
            held = FlowPlan(src=row.src, dst=row.dst, rate=row.rate, path=row.path)
            changes.append(FlowChange(held, flow, row.min, row.max))
    paths = [path for change in changes for path in (change.held.path, change.given.path)]
    nodes = {node for path in paths for node in path}
    return revision_misfit(changes, residual_of(tx, nodes, {hop for path in paths for hop in pairwise(path)}))


def _commit(tx: WriteTx, part: _Part, revision: RevisionProposed) -> None:
    """Only reservations and shares of links change: workers, addresses and flow numbers are the same as before."""
    rows = []
    for flow in part.flows:
        row = part.held[flow.src, flow.dst]
        row.rate, row.path = flow.rate, flow.path
        rows.append(row)
    release_links(tx, rows)
    reserve_links(tx, rows)
    part.job.version = tx.version
    emit_revised(tx, part.job, revision.revision, revision.cause, rows, part.held.values())
