"""Commit of a proposed preemption: all running jobs named make room for a more urgent one, or none does."""

from __future__ import annotations

from functools import partial

from ces_common.db.tables import JobRow
from ces_common.db.uow import WriteTx
from ces_common.jobfile import Preemption
from ces_common.messages.plans import PreemptionCommitted, PreemptionProposed, PreemptionRejected, Victim
from ces_common.queuefile import QueueFile
from ces_common.states import JOB_OVER, JOB_PLACED, JOB_WAITS, JobState
from ces_manager.jobs import lifecycle
from ces_manager.jobs.cpu_amounts import as_asked
from ces_manager.jobs.link_shares import release_links
from ces_manager.jobs.transitions import allocations_of, as_member, change, find_job
from ces_manager.plans.proposal import Refused, Stale, job_at
from ces_manager.plans.reservations import emit_revised, held_flows


def commit_preemption(tx: WriteTx, proposal: PreemptionProposed, queue: QueueFile) -> str | None:
    """Suspend or reschedule all victims, or reject the proposal and return the reason. The freed capacity is reserved
    for nobody: the urgent job gets its plan like any other. A second set of victims for the same job must have been
    chosen from a state in which all that the first gave up was free, or two schedulers would each send others away for
    it."""
    row = find_job(tx, proposal.job)
    try:
        if row is None:
            raise Stale(f"no job {proposal.job}")
        victims = _victims(tx, row, proposal, queue)
    except Refused as error:
        stale = isinstance(error, Stale)
        rejected = PreemptionRejected(preemption=proposal.preemption, job=proposal.job, reason=str(error), stale=stale)
        tx.emit("preemption", "rejected", proposal.preemption, rejected)
        return rejected.reason
    assert row is not None  # or there were no victims
    row.room_made, row.victims = tx.version, {victim.id: victim.attempt for victim, _ in victims}
    committed = PreemptionCommitted(preemption=proposal.preemption, job=row.id, victims=proposal.victims)
    tx.emit("preemption", "committed", proposal.preemption, committed)
    for victim, how in victims:
        whom = f"job {row.name}" if victim.tenant == row.tenant else "a job of another tenant"
        reason = f"makes room for {whom}, whose priority is {row.priority} instead of {victim.priority}"
        if how == "suspend":
            _suspend(tx, victim, proposal.preemption, reason)
        else:
            change(tx, victim, partial(lifecycle.reschedule, cause=lifecycle.Cause.PREEMPTED, reason=reason))
    return None


def _victims(
    tx: WriteTx, row: JobRow, proposal: PreemptionProposed, queue: QueueFile
) -> list[tuple[JobRow, Preemption]]:
    """The victims, and what happens to each. Raises Refused."""
    if queue.preemption is None:
        raise Refused("no job may take another's place: the queue file sets no preemption")
    if row.state not in JOB_WAITS:
        raise Stale(f"job {row.name} is {row.state.value} and does not wait")
    if row.attempt != proposal.attempt:
        raise Stale(f"job {row.name} is at attempt {row.attempt}, the preemption is for {proposal.attempt}")
    _check_earlier(tx, row, proposal.version)
    names = [victim.job for victim in proposal.victims]
    if len(set(names)) != len(names):
        raise Refused("it names a victim twice")
    if row.id in names:
        raise Refused(f"job {row.name} cannot make room for itself")
    found = []
    for asked in proposal.victims:
        victim = _victim(tx, asked, proposal.version)
        if row.priority - victim.priority < queue.preemption:
            raise Refused(
                f"job {row.name} has priority {row.priority}, job {victim.id} has {victim.priority}: the queue "
                f"file's preemption asks for {queue.preemption} less"
            )
        found.append((victim, asked.how))
    return found


def _check_earlier(tx: WriteTx, row: JobRow, version: int) -> None:
    """Raises Stale where jobs were told to make room for this one, and are not surely gone, or were not yet at the
    version given. What became of them since must have been seen, too: whether they gave their room, or took it back."""
    if row.room_made > version:
        raise Stale(f"others already make room for job {row.name} since version {row.room_made}")
    told = [(victim, attempt) for job, attempt in row.victims.items() if (victim := find_job(tx, job)) is not None]
    leaving = [victim.name for victim, attempt in told if victim.attempt == attempt and _leaves(victim)]
    if leaving:
        raise Stale(f"{', '.join(leaving)} must go first, to make room for job {row.name}")
    for victim, _ in told:
        if victim.version > version:
            raise Stale(f"job {victim.name}, which made room for job {row.name}, has changed since version {version}")


def _leaves(row: JobRow) -> bool:
    """Whether the job is to hold nothing any more, and its workers are not surely gone yet."""
    return row.state is JobState.RESCHEDULING or (row.state in JOB_OVER and row.live)


def _victim(tx: WriteTx, asked: Victim, version: int) -> JobRow:
    """A job that may be preempted like this, whatever its priority. Raises Refused."""
    row = job_at(tx, asked.job, asked.attempt, version)
    if row.state not in JOB_PLACED:
        raise Stale(f"job {row.name} is {row.state.value} and has no place to give")
    if asked.how == "suspend" and row.preemption != "suspend":
        raise Refused(f"job {row.name} does not let itself be suspended: its file does not say preemption: suspend")
    if asked.how == "suspend" and row.state is not JobState.RUNNING:
        raise Stale(f"job {row.name} is {row.state.value}; only a running job can be suspended")
    if asked.how == "suspend" and row.move is not None:
        raise Stale(f"a task of job {row.name} is being moved")
    return row


def _suspend(tx: WriteTx, row: JobRow, preemption: str, reason: str) -> None:
    """Freeze a job. It keeps addresses, flow numbers, memory and GPUs, so that it can go on where it is."""
    flows = held_flows(tx, row)
    for flow in flows:
        flow.rate = 0
    release_links(tx, flows)
    for allocation in allocations_of(tx, [row])[row.id]:
        if not as_member(allocation).over:
            as_asked(allocation, 0)
    emit_revised(tx, row, preemption, "suspended", flows, flows)
    change(tx, row, partial(lifecycle.suspend, reason=reason))
