"""What is counted of jobs as they pass from state to state: by the manager that commits it, once it is committed."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Histogram

from ces_common.db.tables import JobRow
from ces_common.db.uow import WriteTx
from ces_common.metrics import LONG
from ces_common.states import JOB_OVER, JobState
from ces_manager.jobs.lifecycle import Cause

QUEUE_WAIT: Final = Histogram("ces_job_queue_wait_seconds", "Time in the queue until a plan was there", buckets=LONG)
PHASE: Final = Histogram("ces_job_phase_seconds", "Time in a state that jobs have left", ["state"], buckets=LONG)
FINISHED: Final = Counter("ces_jobs_finished_total", "Jobs that ended", ["state"])
RESCHEDULED: Final = Counter("ces_jobs_rescheduled_total", "Jobs that left their place to be put elsewhere", ["cause"])
for _state in sorted(JOB_OVER):
    FINISHED.labels(_state)
for _cause in Cause:  # all there from the first, or the first of each would be no increase
    RESCHEDULED.labels(_cause)


def note_step(tx: WriteTx, row: JobRow, state: JobState, cause: Cause | None = None) -> None:
    """A job leaves the state that its row still names, for ``state``."""
    left, spent_s = row.state, max((tx.now - row.state_since).total_seconds(), 0.0)

    def observe() -> None:
        PHASE.labels(left).observe(spent_s)
        if left is JobState.QUEUED and state is JobState.PLANNED:
            QUEUE_WAIT.observe(spent_s)
        if cause is not None:
            RESCHEDULED.labels(cause).inc()
        if state in JOB_OVER:
            FINISHED.labels(state).inc()

    tx.note(observe)
