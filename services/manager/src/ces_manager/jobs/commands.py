"""What users do with submitted jobs: cancel, pause, resume. Each command returns what was so already, if it changed
nothing."""

from __future__ import annotations

from ces_common.db.uow import WriteTx
from ces_common.states import JOB_OVER, JobState
from ces_manager.errors import Conflict
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change, job_row


def cancel_job(tx: WriteTx, job: str) -> str | None:
    """End a job and stop its workers. A job that is over stays as it is. Raises NotFound."""
    row = job_row(tx, job)
    if row.state in JOB_OVER:
        left = "its workers are being stopped" if row.live else "nothing of it is left to stop"
        return f"job {row.name} is {row.state.value} already; {left}"
    change(tx, row, lambda course: lifecycle.cancel(course, "cancelled by the user"))
    return None


def pause_job(tx: WriteTx, job: str) -> str | None:
    """Freeze a running job's workers. Raises NotFound; Conflict where it does not run."""
    return _switch(tx, job, JobState.RUNNING, JobState.PAUSED)


def resume_job(tx: WriteTx, job: str) -> str | None:
    """Let a paused job run on. Raises NotFound; Conflict where it is not paused."""
    return _switch(tx, job, JobState.PAUSED, JobState.RUNNING)


def _switch(tx: WriteTx, job: str, before: JobState, after: JobState) -> str | None:
    row = job_row(tx, job)
    if row.state is after:
        return f"job {row.name} is {after.value} already"
    if row.state is not before:
        if row.state is JobState.SUSPENDED:
            raise Conflict(
                f"job {row.name} is suspended for a more urgent job; it goes on by itself as soon as there is room"
            )
        over = " for good" if row.state in JOB_OVER else ""
        raise Conflict(f"job {row.name} is {row.state.value}{over}; only a {before.value} job can become {after.value}")
    change(tx, row, lambda course: course.move(after))
    return None
