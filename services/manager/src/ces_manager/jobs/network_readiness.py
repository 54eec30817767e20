"""Steps of a job whose network is being put in place."""

from __future__ import annotations

from ces_common.db.uow import WriteTx
from ces_common.states import JobState
from ces_manager.jobs.lifecycle import Course
from ces_manager.jobs.transitions import change, find_job


def network_preparing(tx: WriteTx, job: str, attempt: int) -> None:
    """The attempt's network is with the agents."""
    _network(tx, job, attempt, {JobState.PLANNED: [JobState.PREPARING]})


def network_ready(tx: WriteTx, job: str, attempt: int) -> None:
    """The attempt's network is in place, so that its workers may start."""
    both = [JobState.PREPARING, JobState.STARTING]
    steps = {JobState.PLANNED: both, JobState.PREPARING: both[1:]}
    if not _keeps_former_size(tx, job):
        steps[JobState.RESIZING] = both[1:]
    _network(tx, job, attempt, steps)


def _keeps_former_size(tx: WriteTx, job: str) -> bool:
    """Whether something of the size that a job goes from may be left."""
    row = find_job(tx, job)
    return row is not None and row.next_size is not None


def _network(tx: WriteTx, job: str, attempt: int, steps: dict[JobState, list[JobState]]) -> None:
    row = find_job(tx, job)
    if row is None or row.attempt != attempt:
        return

    def walk(course: Course) -> None:
        for state in steps.get(course.state, []):
            course.move(state)

    change(tx, row, walk)
