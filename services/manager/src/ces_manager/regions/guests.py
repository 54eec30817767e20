"""Where they run: jobs of other regions. A held one is an ordinary job with a committed plan whose workers are not
started before its home has committed it, so that no capacity is kept in second books."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import select

from ces_common.db.region_tables import GuestRow, PartRow
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.jobfile import JobFile
from ces_common.messages.identities import Identity
from ces_common.messages.regions import (
    HOLD_S,
    MAX_FOUND,
    FateAnswer,
    GuestFile,
    GuestJobQuery,
    HoldQuery,
    RemoteJob,
    RemoteStatus,
)
from ces_common.queuefile import QueueFile
from ces_common.roles import Role
from ces_common.states import JOB_OVER, JobState
from ces_manager.access.allowance import allowed
from ces_manager.errors import Invalid, NotFound
from ces_manager.jobs.admission import check_room, check_tasks, check_tenant
from ces_manager.jobs.network_readiness import network_ready
from ces_manager.jobs.submission import submit_job
from ces_manager.jobs.transitions import job_row
from ces_manager.regions.held import PLACED, end


def hold(tx: WriteTx, asked: HoldQuery, queue: QueueFile) -> FateAnswer:
    """Submit a job of another region, to be held once it has a place; asked again, how it stands. Raises what the
    submission of a job does."""
    guest = _of(tx, asked.home, asked.job, asked.attempt)
    if guest is not None:
        row = job_row(tx, guest.job)
        if guest.committed or row.state not in JOB_OVER:
            return _stand(tx, guest, row)
        tx.session.delete(guest)  # released before; nothing of it ran
        tx.session.flush()
    row = submit_job(tx, as_guest(asked), queue=queue)
    tx.session.flush()
    tx.session.add(
        GuestRow(
            job=row.id,
            home=asked.home,
            home_job=asked.job,
            home_attempt=asked.attempt,
            committed=False,
            hold_until=tx.now + timedelta(seconds=HOLD_S),
        )
    )
    return FateAnswer(fate="waiting", remote=row.id)


def as_guest(asked: GuestFile) -> JobFile:
    """The job as a submitter of its tenant alone could submit it here. Raises Invalid."""
    identity = Identity(name=f"region:{asked.home}", role=Role.SUBMITTER, tenants=[asked.file.tenant])
    try:
        asked.file.check_may_leave()
    except ValueError as error:
        raise Invalid("file", str(error)) from error
    return allowed(identity, asked.file.model_copy(update={"regions": []}))


def check_admissible(tx: ReadTx, asked: GuestFile, queue: QueueFile) -> JobFile:
    """What the submission would check. Raises Invalid, Overloaded."""
    file = as_guest(asked)
    check_tenant(queue, file.tenant)
    check_tasks(file)
    check_room(tx, queue, file)
    return file


def _stand(tx: WriteTx, guest: GuestRow, row: JobRow) -> FateAnswer:
    """One that found no room, or has lost it, is given up at once."""
    if guest.committed or row.state in PLACED:
        return FateAnswer(fate="held", remote=row.id)
    if row.state is JobState.QUEUED and row.waiting is None and row.attempt == 1:
        return FateAnswer(fate="waiting", remote=row.id)
    reason = row.waiting.text if row.waiting is not None else row.reason
    end(tx, row, f"no room for the job of region {guest.home}")
    return FateAnswer(fate="released", remote=row.id, reason=reason)


def commit(tx: WriteTx, asked: GuestJobQuery) -> FateAnswer:
    """Let a held job start; once committed it stays so. ``released``: it was given up before, or has lost its place,
    and is ended: its home may have it run elsewhere."""
    guest = _of(tx, asked.home, asked.job, asked.attempt)
    if guest is None:
        return FateAnswer(fate="unknown")
    row = job_row(tx, guest.job)
    if guest.job != asked.remote:
        return FateAnswer(fate="released")
    if not guest.committed:
        if row.state not in PLACED:
            if row.state not in JOB_OVER:
                end(tx, row, f"lost its place before region {guest.home} committed it")
            return FateAnswer(fate="released")
        guest.committed = True
        row.version = tx.version
        if guest.ready == row.attempt:
            tx.session.flush()
            network_ready(tx, row.id, row.attempt)
    return FateAnswer(fate="committed", remote=row.id)


def release(tx: WriteTx, asked: GuestJobQuery) -> FateAnswer:
    """End a job at its home's word, committed or not."""
    guest = _of(tx, asked.home, asked.job, asked.attempt)
    if guest is None:
        return FateAnswer(fate="unknown")
    if guest.job == asked.remote:
        end(tx, job_row(tx, guest.job), f"cancelled by its home, region {guest.home}")
    return FateAnswer(fate="released")


def tries(tx: WriteTx, home: str, jobs: Sequence[str]) -> list[RemoteJob]:
    """Those of a home's jobs that were committed. The others are released: whoever asks has lost what it knew of them,
    and nobody who knew it before may commit one afterwards."""
    found = []
    query = select(GuestRow).where(GuestRow.home == home, GuestRow.home_job.in_(jobs)).order_by(GuestRow.job)
    for guest in tx.session.scalars(query).all():
        if guest.committed:
            found.append(RemoteJob(job=guest.home_job, attempt=guest.home_attempt, remote=guest.job))
        else:
            end(tx, job_row(tx, guest.job), f"region {home} has lost what it knew of it")
    return found[-MAX_FOUND:]


def statuses(tx: ReadTx, home: str, jobs: Sequence[RemoteJob]) -> list[tuple[FateAnswer, RemoteStatus | None]]:
    return [_status(tx, home, job) for job in jobs]


def _status(tx: ReadTx, home: str, job: RemoteJob) -> tuple[FateAnswer, RemoteStatus | None]:
    guest = _of(tx, home, job.job, job.attempt)
    if guest is None:
        return FateAnswer(fate="unknown"), None
    row = job_row(tx, guest.job)
    if guest.job != job.remote or not (guest.committed or row.state in PLACED):
        return FateAnswer(fate="released"), None
    status = RemoteStatus(state=row.state, reason=row.reason, started_at=row.started_at, finished_at=row.finished_at)
    return FateAnswer(fate="committed" if guest.committed else "held", remote=row.id), status


def guest_job(tx: ReadTx, asked: GuestJobQuery) -> str:
    """The job here of another region's try, if it is that one's. Raises NotFound."""
    guest = _of(tx, asked.home, asked.job, asked.attempt)
    part = tx.session.get(PartRow, asked.remote)
    if part is not None and (part.home, part.home_job, part.home_attempt) == (asked.home, asked.job, asked.attempt):
        return part.job
    if guest is None or guest.job != asked.remote:
        raise NotFound(f"no job {asked.remote} of region {asked.home}")
    return guest.job


def _of(tx: ReadTx, home: str, job: str, attempt: int) -> GuestRow | None:
    query = select(GuestRow).where(GuestRow.home == home, GuestRow.home_job == job, GuestRow.home_attempt == attempt)
    return tx.session.scalars(query).one_or_none()
