"""Steps of a job whose network is being put in place."""

from __future__ import annotations

from functools import partial

from ces_common.db.region_tables import GuestRow, PartRow
from ces_common.db.uow import WriteTx
from ces_common.states import JobState
from ces_common.task_move import MoveFact, MoveState
from ces_manager.jobs.lifecycle import Course, depart
from ces_manager.jobs.task_moves import move_of, step
from ces_manager.jobs.transitions import ID_LENGTH, change, find_job


def network_preparing(tx: WriteTx, job: str, attempt: int) -> None:
    """The attempt's network is with the agents."""
    _network(tx, job, attempt, {JobState.PLANNED: [JobState.PREPARING]})


def network_ready(tx: WriteTx, job: str, attempt: int) -> None:
    """The attempt's network is in place, so that its workers may start; those of a job that is held for another region
    once that one has committed it, and those of a part of one once all parts are ready."""
    guest = tx.session.get(GuestRow, job) if len(job) <= ID_LENGTH else None
    if guest is not None and not guest.committed:
        guest.ready = attempt
        return
    part = tx.session.get(PartRow, job) if len(job) <= ID_LENGTH else None
    if part is not None and not part.started:
        part.ready = attempt
        return
    both = [JobState.PREPARING, JobState.STARTING]
    starts = both[1:]
    _network(tx, job, attempt, {JobState.PLANNED: both, JobState.PREPARING: starts, JobState.RESIZING: starts})


def move_ready(tx: WriteTx, job: str, move: str) -> None:
    """The network that a move needs is in place, so that the old copy may end."""
    row = find_job(tx, job)
    under_way = None if row is None else move_of(tx, row)
    if row is None or under_way is None or under_way.id != move or row.state is not JobState.RUNNING:
        return
    if step(tx, row, under_way, MoveFact.NETWORK_READY) and under_way.state is MoveState.STOPPING:
        change(tx, row, partial(depart, member=under_way.old))


def _network(tx: WriteTx, job: str, attempt: int, steps: dict[JobState, list[JobState]]) -> None:
    row = find_job(tx, job)
    if row is None or row.attempt != attempt or row.next_size is not None:  # something of its former size may be left
        return

    def walk(course: Course) -> None:
        for state in steps.get(course.state, []):
            course.move(state)

    change(tx, row, walk)
