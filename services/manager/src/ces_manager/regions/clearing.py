"""At home: what other regions have of jobs that may have left in what this database has lost."""

from __future__ import annotations

from collections import defaultdict

from ces_common.db.region_tables import AwayRow
from ces_common.db.tables import JobRow
from ces_common.db.uow import WriteTx
from ces_common.messages.regions import ClearedJobs, Decision
from ces_common.states import JOB_OVER, JobState
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change, find_job
from ces_manager.regions.away import goes_to


def clear(tx: WriteTx, said: ClearedJobs) -> None:
    """Take over what other regions run or ran, and let the rest be placed."""
    found = defaultdict[str, list[Decision]](list)
    for run in said.found:
        found[run.job].append(run)
    for job in sorted({*said.jobs, *found}):
        row, away = find_job(tx, job), tx.session.get(AwayRow, job)
        if row is None or away is None or row.state in JOB_OVER or away.epoch == tx.cluster().epoch:
            continue
        last = max(found[job], key=lambda run: run.attempt, default=None)
        if last is not None and last.attempt >= row.attempt:
            _take_over(tx, row, away, last)
        elif job not in said.jobs:
            continue
        away.epoch = tx.cluster().epoch
        row.version = tx.version


def _take_over(tx: WriteTx, row: JobRow, away: AwayRow, run: Decision) -> None:
    """A try of a job, the last one or later than this database knows of."""
    if row.state is JobState.QUEUED:
        row.attempt = run.attempt
        goes_to(tx, row, away, run, committed=True)
        return
    if (away.region, away.remote, away.attempt) != (run.region, run.remote, run.attempt):
        away.region, away.remote, away.attempt = run.region, run.remote, run.attempt
        away.closed, away.remote_state, away.unknown_since, away.decided_at = False, None, None, tx.now
    away.committed, away.forgotten, away.remote_epoch = True, False, run.epoch
    away.committed_at = away.committed_at or tx.now
    if row.state is JobState.ELSEWHERE:
        row.attempt, row.region = run.attempt, run.region
    else:  # it has a place here by what was restored, and has left it since: both are ended, lest it runs twice
        why = f"it had left for region {run.region} in what this database has lost"
        change(tx, row, lambda course: lifecycle.cancel(course, why))
