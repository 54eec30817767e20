"""At home: jobs that may run in other regions, and those that do. Only what that region's database says moves them;
silence is noted and moves nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta

from sqlalchemy import select

from ces_common.db.region_tables import AwayRow
from ces_common.db.tables import ClusterRow, JobRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.regions import (
    MAX_JOBS,
    SILENT_S,
    AwayJob,
    Decision,
    NotTaken,
    OfferedJob,
    RemoteStatus,
    Reported,
    Wanted,
)
from ces_common.states import JOB_OVER, JobState
from ces_manager.jobs.doubts import doubt
from ces_manager.jobs.lifecycle import MAX_REASON, Course
from ces_manager.jobs.transitions import change, find_job
from ces_manager.text import storable

OFFERED_AT_ONCE = 8
_OFFERED = (
    select(JobRow, AwayRow.not_taken)
    .join(AwayRow, AwayRow.job == JobRow.id)
    .where(JobRow.state == JobState.QUEUED, JobRow.waiting.is_not(None), AwayRow.epoch == ClusterRow.epoch)
    .order_by(JobRow.priority.desc(), JobRow.id)
    .limit(OFFERED_AT_ONCE)
)
_AWAY = select(AwayRow, JobRow.state).join(JobRow, JobRow.id == AwayRow.job).order_by(AwayRow.job)
_OPEN = _AWAY.where(~AwayRow.closed, AwayRow.region.is_not(None))


def offered_jobs(tx: ReadTx, skip: Collection[str] = ()) -> list[OfferedJob]:
    """Some waiting jobs that may run elsewhere and for which the scheduler has found no room here, the most urgent
    first; without those in ``skip``."""
    rows = tx.session.execute(_OFFERED.where(JobRow.id.not_in(skip)))
    return [OfferedJob(job=row.id, attempt=row.attempt, file=row.spec, not_taken=said or {}) for row, said in rows]


def note_not_taken(tx: WriteTx, said: NotTaken) -> None:
    """Why other regions took a job not: told beside why it has no place here, and no change of the job."""
    row, away = find_job(tx, said.job), tx.session.get(AwayRow, said.job)
    if row is not None and away is not None and row.state is JobState.QUEUED and row.attempt == said.attempt:
        away.not_taken = {region: storable(why, MAX_REASON) for region, why in said.why.items()}


def decide(tx: WriteTx, decision: Decision) -> str | None:
    """Write down that a waiting job runs in another region: the commit point. Returns why that cannot be."""
    row, away = find_job(tx, decision.job), tx.session.get(AwayRow, decision.job)
    if row is None or away is None:
        return f"no job {decision.job} may run elsewhere"
    if (away.region, away.remote, away.attempt) == (decision.region, decision.remote, decision.attempt):
        return None  # an answer was lost
    if row.state is not JobState.QUEUED or row.attempt != decision.attempt:
        return f"job {row.name} is {row.state} at attempt {row.attempt}"
    if (why := doubt(tx, row)) is not None:
        return why
    goes_to(tx, row, away, decision)
    return None


def goes_to(tx: WriteTx, row: JobRow, away: AwayRow, decision: Decision, *, committed: bool = False) -> None:
    """Write down where a job runs that waits."""
    chosen = f", chosen {decision.chosen}" if decision.chosen else ""
    where = storable(f"in region {decision.region}{chosen}", MAX_REASON)
    change(tx, row, lambda course: course.move(JobState.ELSEWHERE, where))
    row.region = decision.region
    away.region, away.remote, away.attempt = decision.region, decision.remote, decision.attempt
    away.committed, away.remote_epoch = committed, decision.epoch
    away.forgotten = away.closed = False
    away.remote_state = away.unknown_since = away.not_taken = None
    away.decided_at, away.committed_at = tx.now, tx.now if committed else None


def open_jobs(tx: ReadTx, epochs: Mapping[str, str] | None = None) -> list[AwayJob]:
    """Those of which another region is still to be told or asked something. ``epochs``: of others' databases. One that
    was restored since it last spoke of a job may have it run again although that is over: it is told so."""
    found = list(tx.session.execute(_OPEN))
    for region, epoch in (epochs or {}).items():
        lost = (AwayRow.closed, AwayRow.region == region, AwayRow.remote_epoch != epoch)
        found += tx.session.execute(_AWAY.where(*lost).limit(MAX_JOBS))
    return [
        AwayJob(
            job=away.job,
            attempt=away.attempt,
            region=away.region,
            remote=away.remote,
            wanted=_wanted(state, committed=away.committed and not away.forgotten),
        )
        for away, state in found
    ]


def _wanted(state: JobState, *, committed: bool) -> Wanted:
    if state in JOB_OVER:  # cancelled here: its region goes on until it is told
        return "release"
    return "status" if committed else "commit"


def remote_run(tx: ReadTx, job: str) -> Decision | None:
    """Where a job runs or ran; None for one that did so here alone."""
    away = tx.session.get(AwayRow, job)
    if away is None or away.region is None:
        return None
    return Decision(job=job, attempt=away.attempt, region=away.region, remote=away.remote)


def has_news(tx: ReadTx, reports: Iterable[Reported]) -> list[Reported]:
    """Those that change something: most say what is known, and need no transaction."""
    found = []
    for report in reports:
        away = tx.session.get(AwayRow, report.job)
        if away is None or not _is_about(away, report):
            continue
        if report.fate is None:
            if away.unknown_since is None and not away.closed:
                found.append(report)
        elif away.closed:
            if away.remote_epoch != report.epoch:
                found.append(report)
        elif (
            away.unknown_since is not None
            or away.remote_epoch != report.epoch
            or not away.committed
            or away.forgotten
            or report.fate != "committed"
            or (report.status is not None and report.status.state != away.remote_state)
        ):
            found.append(report)
    return found


def take_reports(tx: WriteTx, reports: Iterable[Reported]) -> None:
    """What regions say of jobs that run there; silence is told of once it has lasted for SILENT_S."""
    for report in reports:
        away, row = tx.session.get(AwayRow, report.job), find_job(tx, report.job)
        if away is None or row is None or not _is_about(away, report):
            continue
        restored = report.fate is not None and report.epoch != away.remote_epoch
        if away.closed:
            if report.fate in ("released", "unknown"):
                away.remote_epoch = report.epoch
            continue
        row.version = tx.version
        if report.fate is None:
            away.unknown_since = away.unknown_since or tx.now - timedelta(seconds=SILENT_S)
            continue
        away.unknown_since, away.remote_epoch = None, report.epoch
        if row.state in JOB_OVER:
            away.closed = report.fate in ("released", "unknown")
        elif report.fate == "released" and not (away.committed or restored):
            _queue_again(tx, row, away)
        elif report.fate in ("released", "unknown"):  # it may have run in what that region's database has lost
            _give_up(tx, row, away)
        elif report.fate == "held":  # said once it was committed: that region has lost the commit, and is told it again
            away.forgotten = away.committed
        elif report.fate == "committed":
            away.committed, away.forgotten = True, False
            away.committed_at = away.committed_at or tx.now
            if report.status is not None:
                _follow(tx, row, away, report.status)


def _is_about(away: AwayRow, report: Reported) -> bool:
    return (away.region, away.remote, away.attempt) == (report.region, report.remote, report.attempt)


def _give_up(tx: WriteTx, row: JobRow, away: AwayRow) -> None:
    why = f"region {away.region} knows nothing of it any more, nor whether it ran"
    change(tx, row, lambda course: course.move(JobState.FAILED, why))
    away.closed = True


def _queue_again(tx: WriteTx, row: JobRow, away: AwayRow) -> None:
    """Its region has said that nothing of it ran there."""
    why = f"region {away.region} did not keep its place until it was decided"
    change(tx, row, lambda course: course.move(JobState.QUEUED, why))
    row.region = None
    away.region = away.remote = away.attempt = away.remote_state = away.remote_epoch = None
    away.decided_at = away.committed_at = None
    away.committed = away.forgotten = False


def _follow(tx: WriteTx, row: JobRow, away: AwayRow, status: RemoteStatus) -> None:
    away.remote_state = status.state.value
    if row.started_at is None and status.started_at is not None:
        row.started_at = min(max(status.started_at, row.submitted_at), tx.now)
    end = {
        JobState.SUCCEEDED: JobState.SUCCEEDED,
        JobState.FAILED: JobState.FAILED,
        JobState.CANCELLED: JobState.FAILED,  # by that region's people, not by this one's
    }.get(status.state)
    if end is None:
        return
    reason = storable(status.reason, MAX_REASON) if status.reason else None
    if end is JobState.FAILED:
        reason = f"in region {away.region}: {reason or status.state.value}"

    def walk(course: Course) -> None:
        course.move(end, reason)

    change(tx, row, walk)
    away.closed = True
