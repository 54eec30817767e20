"""Transitions of jobs: a job's rows become a course, the course is walked, its steps are stored with their events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from functools import partial

from sqlalchemy import bindparam, delete, select, update

from ces_common.db.tables import LIVE_STATES, AllocationRow, HopRow, JobRow, ReservationRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.states import JOB_OVER, JOB_WAITS, AllocationState, JobState
from ces_manager.errors import NotFound
from ces_manager.jobs import task_moves
from ces_manager.jobs.job_events import emit_allocation, emit_job
from ces_manager.jobs.job_metrics import note_step
from ces_manager.jobs.lifecycle import Cause, Course, JobStep, Member, MemberStep, lose, reschedule, turn_back
from ces_manager.jobs.next_size import begin_small, give_up, hold_nodes, next_allocations, take_over
from ces_manager.jobs.trace_steps import begin_trace, trace_step

ID_LENGTH = 26  # a ULID
NOWHERE = "a task that was to move could neither start there nor go back"
_PRESENT = (
    select(AllocationRow)
    .join(JobRow, (JobRow.id == AllocationRow.job) & (JobRow.attempt == AllocationRow.attempt))
    .where(AllocationRow.job.in_(bindparam("jobs", expanding=True)))
    .order_by(AllocationRow.job, AllocationRow.rank)
)
_OF_JOB = (ReservationRow.job == bindparam("the_job")) & ReservationRow.held
_FREE_LINKS = delete(HopRow).where(HopRow.number.in_(select(ReservationRow.number).where(_OF_JOB)))
_FREE_NUMBERS = update(ReservationRow).where(_OF_JOB).values(held=False)


def find_job(tx: ReadTx, job: str) -> JobRow | None:
    """None for what is no job's id; Postgres would refuse to compare with a longer one."""
    return tx.session.get(JobRow, job) if len(job) <= ID_LENGTH else None


def job_row(tx: ReadTx, job: str) -> JobRow:
    """Raises NotFound."""
    row = find_job(tx, job)
    if row is None:
        raise NotFound(f"no job {job}")
    return row


def check_visible(tx: ReadTx, job: str, tenants: Collection[str]) -> None:
    """Raises NotFound for a job of another tenant, too."""
    if job_row(tx, job).tenant not in tenants:
        raise NotFound(f"no job {job}")


def allocations_of(tx: ReadTx, jobs: Iterable[JobRow]) -> dict[str, list[AllocationRow]]:
    """The present attempt's allocations of each job, in rank order."""
    ids = [row.id for row in jobs]
    found: dict[str, list[AllocationRow]] = defaultdict(list)
    if ids:
        for row in tx.session.scalars(_PRESENT, {"jobs": ids}):
            found[row.job].append(row)
    return found


def change(tx: WriteTx, row: JobRow, walk: Callable[[Course], None]) -> Course:
    """Let ``walk`` move the job on, and store the steps that it took, if any."""
    rows = {allocation.id: allocation for allocation in allocations_of(tx, [row])[row.id]}
    course = Course(
        row.id,
        row.state,
        [as_member(allocation) for allocation in rows.values()],
        restarts=row.restarts,
        restart=row.restart,
        bound=row.part is not None,
        coming=task_moves.coming(tx, row),
    )
    walk(course)
    if not course.steps:
        return course
    row.version = tx.version
    row.restarts = course.restarts
    if row.next_size is not None and course.state is not JobState.RESIZING:  # while the attempt is still the former one
        give_up(tx, row)
    if row.move is not None and course.state not in task_moves.STAYS:
        task_moves.leave(tx, row, course)
    for step in course.steps:
        if isinstance(step, JobStep):
            _job_step(tx, row, step)
        else:
            _member_step(tx, row, rows[step.member.id], step)
    _settle_size(tx, row, course)
    if row.move is not None and task_moves.settle(tx, row, course):
        return change(tx, row, partial(reschedule, cause=Cause.WORKER_FAILED, reason=NOWHERE))
    if course.released and (row.state in JOB_OVER or row.state is JobState.QUEUED):
        _release(tx, row.id)
        row.placed_at = None
        row.live = row.state not in JOB_OVER
    return course


def change_on(tx: WriteTx, row: JobRow, node: str, walk: Callable[[Course], None], reason: str, *, lost: bool) -> None:
    """The same where a node is lost, or to be left: if the job has nothing there but what a move of one of its tasks
    holds, the move alone is concerned. ``lost``: nothing runs there any more."""
    move, leaving = task_moves.move_of(tx, row), task_moves.leaving(tx, row)
    there = [each for each in allocations_of(tx, [row])[row.id] if each.node == node and each.state in LIVE_STATES]
    if move is None or any(each.id not in (task_moves.coming(tx, row), leaving) for each in there):
        change(tx, row, walk)
    elif there and leaving is not None:
        task_moves.lose_source(tx, row, move)
        if lost:
            change(tx, row, partial(lose, member=leaving, reason=reason))
    elif there:
        change(tx, row, partial(turn_back, reason=reason, gone=lost))
    else:
        task_moves.lose_beside(tx, row, node, reason)


def _settle_size(tx: WriteTx, row: JobRow, course: Course) -> None:
    """A resize ends when nothing of the former size is left."""
    if row.next_size is None:
        return
    if course.released:
        allocations = take_over(tx, row)
        begin_trace(tx, row)
        for allocation in allocations:
            emit_allocation(tx, row, allocation, None)
    else:
        hold_nodes(tx, row, next_allocations(tx, row))


def as_member(row: AllocationRow) -> Member:
    return Member(
        id=row.id,
        task=row.task,
        node=row.node,
        state=row.state,
        incarnation=row.incarnation,
        stopping_since=row.stopping_since,
        exit_code=row.exit_code,
        reason=row.reason,
    )


def _job_step(tx: WriteTx, row: JobRow, step: JobStep) -> None:
    note_step(tx, row, step.state, step.cause)
    row.state, row.state_since = step.state, tx.now
    if step.previous in JOB_WAITS:
        row.waiting, row.queue_status = None, None
    if step.state is JobState.QUEUED:  # once more: a new attempt, whose reason is that of the last one's end
        row.attempt += 1
        begin_small(row)
        begin_trace(tx, row)
    else:
        row.reason = step.reason
    if step.state is JobState.RESIZING:
        row.resizing_at = tx.now
    elif step.state is JobState.RUNNING and row.resizing_at is not None:
        row.resize_s, row.resizing_at = (tx.now - row.resizing_at).total_seconds(), None
    elif step.state is not JobState.STARTING:
        row.resizing_at = None
    if step.state is JobState.STARTING and step.previous is not JobState.RUNNING:
        trace_step(tx, row, "network in place")
    if step.state is JobState.RUNNING and step.previous is JobState.STARTING:
        trace_step(tx, row, "workers run")
    if step.state is JobState.RUNNING:
        row.late = 0
        row.started_at = row.started_at or tx.now
    if step.state in JOB_OVER:
        row.finished_at = tx.now
    emit_job(tx, row, step.previous)


def _member_step(tx: WriteTx, job: JobRow, row: AllocationRow, step: MemberStep) -> None:
    member = step.member
    row.state, row.incarnation = member.state, member.incarnation
    row.exit_code, row.reason = member.exit_code, member.reason
    row.waits = None
    if member.state is AllocationState.STOPPING:
        row.stopping_since = tx.version
    emit_allocation(tx, job, row, step.previous)


def _release(tx: WriteTx, job: str) -> None:
    """Give back the links' shares; the reservations stay as history."""
    for statement in (_FREE_LINKS, _FREE_NUMBERS):
        tx.session.connection().execute(statement, {"the_job": job})
