"""Steps of a job whose network is being put in place."""

from __future__ import annotations

from ces_common.db.region_tables import GuestRow, PartRow
from ces_common.db.uow import WriteTx
from ces_common.states import JobState
from ces_manager.jobs.lifecycle import Course
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


def _network(tx: WriteTx, job: str, attempt: int, steps: dict[JobState, list[JobState]]) -> None:
    row = find_job(tx, job)
    if row is None or row.attempt != attempt or row.next_size is not None:  # something of its former size may be left
        return

    def walk(course: Course) -> None:
        for state in steps.get(course.state, []):
            course.move(state)

    change(tx, row, walk)
