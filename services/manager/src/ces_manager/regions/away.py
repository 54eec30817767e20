"""At home: jobs that may run in other regions, and those that do. Only what that region's database says moves them;
silence is noted and moves nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta

from sqlalchemy import select

from ces_common.db.region_tables import AwayRow
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.regions import SILENT_S, AwayJob, Decision, OfferedJob, RemoteStatus, Reported, Wanted
from ces_common.states import JOB_OVER, JobState
from ces_manager.jobs.lifecycle import MAX_REASON, Course
from ces_manager.jobs.transitions import change, find_job
from ces_manager.text import storable

OFFERED_AT_ONCE = 5
_OFFERED = (
    select(JobRow)
    .join(AwayRow, AwayRow.job == JobRow.id)
    .where(JobRow.state == JobState.QUEUED, JobRow.waiting.is_not(None))
    .order_by(JobRow.priority.desc(), JobRow.id)
    .limit(OFFERED_AT_ONCE)
)
_OPEN = (
    select(AwayRow, JobRow.state)
    .join(JobRow, JobRow.id == AwayRow.job)
    .where(~AwayRow.closed, AwayRow.region.is_not(None))
    .order_by(AwayRow.job)
)


def offered_jobs(tx: ReadTx, skip: Collection[str] = ()) -> list[OfferedJob]:
    """Some waiting jobs that may run elsewhere and for which the scheduler has found no room here, the most urgent
    first; without those in ``skip``."""
    rows = tx.session.scalars(_OFFERED.where(JobRow.id.not_in(skip)))
    return [OfferedJob(job=row.id, attempt=row.attempt, file=row.spec) for row in rows]


def decide(tx: WriteTx, decision: Decision) -> str | None:
    """Write down that a waiting job runs in another region: the commit point. Returns why that cannot be."""
    row, away = find_job(tx, decision.job), tx.session.get(AwayRow, decision.job)
    if row is None or away is None:
        return f"no job {decision.job} may run elsewhere"
    if (away.region, away.remote, away.attempt) == (decision.region, decision.remote, decision.attempt):
        return None  # an answer was lost
    if row.state is not JobState.QUEUED or row.attempt != decision.attempt:
        return f"job {row.name} is {row.state} at attempt {row.attempt}"
    change(tx, row, lambda course: course.move(JobState.ELSEWHERE, f"in region {decision.region}"))
    row.region = decision.region
    away.region, away.remote, away.attempt = decision.region, decision.remote, decision.attempt
    away.committed = away.forgotten = away.closed = False
    away.remote_state = away.unknown_since = away.committed_at = None
    away.decided_at = tx.now
    return None


def open_jobs(tx: ReadTx) -> list[AwayJob]:
    """Those of which another region is still to be told or asked something."""
    return [
        AwayJob(
            job=away.job,
            attempt=away.attempt,
            region=away.region,
            remote=away.remote,
            wanted=_wanted(state, committed=away.committed and not away.forgotten),
        )
        for away, state in tx.session.execute(_OPEN)
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
            if away.unknown_since is None:
                found.append(report)
        elif (
            away.unknown_since is not None
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
        row.version = tx.version
        if report.fate is None:
            away.unknown_since = away.unknown_since or tx.now - timedelta(seconds=SILENT_S)
            continue
        away.unknown_since = None
        if row.state in JOB_OVER:
            away.closed = report.fate in ("released", "unknown")
        elif report.fate == "released" and not away.committed:
            _queue_again(tx, row, away)
        elif report.fate in ("released", "unknown"):  # committed before, it may have run in what that region has lost
            _give_up(tx, row, away)
        elif report.fate == "held":  # said once it was committed: that region has lost the commit, and is told it again
            away.forgotten = away.committed
        elif report.fate == "committed":
            away.committed, away.forgotten = True, False
            away.committed_at = away.committed_at or tx.now
            if report.status is not None:
                _follow(tx, row, away, report.status)


def _is_about(away: AwayRow, report: Reported) -> bool:
    known = (away.region, away.remote, away.attempt)
    return not away.closed and known == (report.region, report.remote, report.attempt)


def _give_up(tx: WriteTx, row: JobRow, away: AwayRow) -> None:
    why = f"region {away.region} knows nothing of it any more, nor whether it ran"
    change(tx, row, lambda course: course.move(JobState.FAILED, why))
    away.closed = True


def _queue_again(tx: WriteTx, row: JobRow, away: AwayRow) -> None:
    """Its region has said that nothing of it ran there."""
    why = f"region {away.region} did not keep its place until it was decided"
    change(tx, row, lambda course: course.move(JobState.QUEUED, why))
    row.region = None
    away.region = away.remote = away.attempt = away.remote_state = away.decided_at = away.committed_at = None
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
