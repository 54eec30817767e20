"""A scheduler's proposals to take from running jobs what a more urgent one needs: commit all of one or none of it."""

from __future__ import annotations

from functools import partial

from ces_common.db.tables import JobRow
from ces_common.db.uow import WriteTx
from ces_common.jobfile import Preemption
from ces_common.messages.events import PreemptionProposed, PreemptionRejected, Victim
from ces_common.queuefile import QueueFile
from ces_common.states import JOB_PLACED, JOB_WAITS, JobState
from ces_manager import lifecycle
from ces_manager.changes import allocations_of, as_member, change
from ces_manager.holding import emit_revised, free_links, held_flows


class _Refused(Exception):
    """Why a preemption cannot be committed."""


class _Stale(_Refused):
    """A job is not as it was at the version that the preemption was made from."""


def commit_preemption(tx: WriteTx, proposal: PreemptionProposed, queue: QueueFile) -> str | None:
    """Take from all victims what they are to give; otherwise reject it, with the reason, which is returned. What is
    given up is not kept for anybody: the job that it is for gets its plan like any other."""
    row = _row(tx, proposal.job)
    try:
        if row is None:
            raise _Stale(f"no job {proposal.job}")
        victims = _victims(tx, row, proposal, queue)
    except _Refused as error:
        stale = isinstance(error, _Stale)
        rejected = PreemptionRejected(preemption=proposal.preemption, job=proposal.job, reason=str(error), stale=stale)
        tx.emit("preemption", "rejected", proposal.preemption, rejected, job=None if row is None else row.id)
        return rejected.reason
    for victim, how in victims:
        reason = f"makes room for job {row.name}, whose priority is {row.priority} instead of {victim.priority}"
        if how == "suspend":
            _suspend(tx, victim, proposal.preemption, reason)
        else:
            change(tx, victim, partial(lifecycle.reschedule, reason=reason))
    return None


def _row(tx: WriteTx, job: str) -> JobRow | None:
    return tx.session.get(JobRow, job) if len(job) <= 26 else None


def _victims(
    tx: WriteTx, row: JobRow, proposal: PreemptionProposed, queue: QueueFile
) -> list[tuple[JobRow, Preemption]]:
    """Who is to make room, and how. Raises _Refused."""
    if queue.preemption is None:
        raise _Refused("no job may take another's place: the queue file sets no preemption")
    if row.state not in JOB_WAITS:
        raise _Stale(f"job {row.name} is {row.state.value} and does not wait")
    if row.attempt != proposal.attempt:
        raise _Stale(f"job {row.name} is at attempt {row.attempt}, the preemption is for {proposal.attempt}")
    names = [victim.job for victim in proposal.victims]
    if len(set(names)) != len(names):
        raise _Refused("it names a victim twice")
    if row.id in names:
        raise _Refused(f"job {row.name} cannot make room for itself")
    found = []
    for asked in proposal.victims:
        victim = _victim(tx, asked, proposal.version)
        if row.priority - victim.priority < queue.preemption:
            raise _Refused(
                f"job {row.name} has priority {row.priority}, job {victim.name} has {victim.priority}: the queue "
                f"file's preemption asks for {queue.preemption} less"
            )
        found.append((victim, asked.how))
    return found


def _victim(tx: WriteTx, asked: Victim, version: int) -> JobRow:
    """A job that may be taken from like this, whatever its priority. Raises _Refused."""
    row = _row(tx, asked.job)
    if row is None:
        raise _Stale(f"no job {asked.job}")
    if row.attempt != asked.attempt:
        raise _Stale(f"job {row.name} is at attempt {row.attempt}, the preemption is of {asked.attempt}")
    if row.version > version:
        raise _Stale(f"job {row.name} has changed since version {version}")
    if row.state not in JOB_PLACED:
        raise _Stale(f"job {row.name} is {row.state.value} and has no place to give")
    if asked.how == "suspend" and row.preemption != "suspend":
        raise _Refused(f"job {row.name} does not let itself be suspended: its file does not say preemption: suspend")
    if asked.how == "suspend" and row.state is not JobState.RUNNING:
        raise _Stale(f"job {row.name} is {row.state.value}; only a running job can be suspended")
    return row


def _suspend(tx: WriteTx, row: JobRow, preemption: str, reason: str) -> None:
    """It keeps its addresses, flow numbers, memory and GPUs, so that it can go on where it is."""
    flows = held_flows(tx, row)
    for flow in flows:
        flow.bandwidth = 0
    free_links(tx, flows)
    for allocation in allocations_of(tx, [row])[row.id]:
        if not as_member(allocation).over:
            allocation.cpu = 0
    emit_revised(tx, row, preemption, "suspended", flows, flows)
    change(tx, row, partial(lifecycle.suspend, reason=reason))
