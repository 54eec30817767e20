"""At home: what other regions have of jobs that may have left in what this database has lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import partial

from ces_common.db.region_tables import AwayRow, SplitRow
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.regions import ClearedJobs, Decision, FoundPart
from ces_common.messages.split import PartState
from ces_common.states import JOB_OVER, JobState
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change, find_job
from ces_manager.regions.away import goes_to


def clear(tx: WriteTx, said: ClearedJobs) -> None:
    """Take over what other regions run or ran, and let the rest be placed."""
    found = defaultdict[str, list[Decision]](list)
    for run in said.found:
        found[run.job].append(run)
    epoch = tx.cluster().epoch
    doubted = {part.job for part in said.parts if _in_doubt(tx, part.job, epoch)}
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
    _end_forgotten(tx, [part for part in said.parts if part.job in doubted])


def _in_doubt(tx: ReadTx, job: str, epoch: str) -> bool:
    away = tx.session.get(AwayRow, job)
    return away is not None and away.epoch != epoch


def _end_forgotten(tx: WriteTx, said: Iterable[FoundPart]) -> None:
    """Of a split that this database has lost it is not known who else has parts, nor where: those that are found are
    ended, and so is the job, which may have run."""
    found = defaultdict[str, list[FoundPart]](list)
    for part in said:
        found[part.job].append(part)
    for job, parts in sorted(found.items()):
        row, split = find_job(tx, job), tx.session.get(SplitRow, job)
        known = [] if split is None else split.parts
        if row is None:
            continue
        names = {(part.attempt, part.part, part.remote, part.region) for part in known}
        later = [part for part in parts if part.attempt >= row.attempt]  # of earlier tries it is known that they ended
        lost = [part for part in later if (part.attempt, part.part, part.remote, part.region) not in names]
        if not lost:
            continue
        ended = [PartState(**part.model_dump(), tasks=[], committed=True, lost=True) for part in lost]
        if split is not None:
            tx.session.delete(split)
            tx.session.flush()
        attempt = max(part.attempt for part in lost)
        tx.session.add(SplitRow(job=job, attempt=attempt, parts=[*known, *ended], places=[], closed=False))
        tx.session.flush()
        row.version = tx.version
        why = f"it was split over regions, {lost[0].region} among them, in what this database has lost"
        change(tx, row, partial(lifecycle.fail, reason=why))


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
