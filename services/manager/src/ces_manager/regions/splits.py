"""At home: jobs that are split over regions. Only what those regions' databases say moves them; silence is noted and
moves nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import select

from ces_common.db.region_tables import AwayRow, SplitRow
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.regions import SILENT_S, Decision
from ces_common.messages.split import PartReport, PartState, PartToAsk, SplitDecision
from ces_common.states import JobState
from ces_manager.jobs.doubts import doubt
from ces_manager.jobs.lifecycle import MAX_REASON, Course
from ces_manager.jobs.transitions import change, find_job
from ces_manager.regions.split_course import heard, verdict, words
from ces_manager.text import storable

_OPEN = (
    select(SplitRow, JobRow.state)
    .join(JobRow, JobRow.id == SplitRow.job)
    .where(~SplitRow.closed)
    .order_by(SplitRow.job)
)


def decide(tx: WriteTx, decision: SplitDecision) -> str | None:
    """Write down that a waiting job runs in these parts: the commit point. Returns why that cannot be."""
    row, split = find_job(tx, decision.job), tx.session.get(SplitRow, decision.job)
    if row is None or tx.session.get(AwayRow, decision.job) is None:
        return f"no job {decision.job} may run elsewhere"
    if split is not None and split.attempt == decision.attempt and _same(split.parts, decision.parts):
        return None  # an answer was lost
    if row.state is not JobState.QUEUED or row.attempt != decision.attempt:
        return f"job {row.name} is {row.state} at attempt {row.attempt}"
    if (why := doubt(tx, row)) is not None:
        return why
    if {task.name for task in row.tasks} != {task for part in decision.parts for task in part.tasks}:
        return "the parts are not the whole job"
    if split is not None:
        tx.session.delete(split)
        tx.session.flush()
    where = " and ".join(part.region for part in decision.parts)
    change(tx, row, lambda course: course.move(JobState.ELSEWHERE, f"split over regions {where}"))
    fresh = [PartState(**part.model_dump(include=_NAMES)) for part in decision.parts]
    tx.session.add(SplitRow(job=row.id, attempt=decision.attempt, parts=fresh, places=decision.places, closed=False))
    return None


_NAMES = {"job", "attempt", "part", "remote", "region", "tasks"}


def _same(known: Iterable[PartState], said: Iterable[PartState]) -> bool:
    return [(part.region, part.remote) for part in known] == [(part.region, part.remote) for part in said]


def to_ask(tx: ReadTx) -> list[PartToAsk]:
    """What regions are to be told or asked next."""
    found = []
    for split, state in tx.session.execute(_OPEN):
        for part, word in zip(split.parts, words(split.parts, state), strict=True):
            if word is not None:
                places = [each for each in split.places if each.task not in part.tasks] if word == "commit" else []
                named = part.model_dump(include=_NAMES - {"tasks"})
                found.append(PartToAsk(**named, word=word, places=places))
    return found


def has_news(tx: ReadTx, reports: Iterable[PartReport]) -> list[PartReport]:
    """Those that change something: most say what is known, and need no transaction."""
    found = []
    for report in reports:
        split = tx.session.get(SplitRow, report.job)
        part = None if split is None else _part_of(split, report)
        if split is None or part is None or split.closed:
            continue
        if _known(part, report) != part:
            found.append(report)
    return found


def take_reports(tx: WriteTx, reports: Iterable[PartReport]) -> None:
    for report in reports:
        split, row = tx.session.get(SplitRow, report.job), find_job(tx, report.job)
        part = None if split is None else _part_of(split, report)
        if split is None or row is None or part is None or split.closed:
            continue
        row.version = tx.version
        known = _known(part, report)
        split.parts = [known if each is part else each for each in split.parts]
        if not any(each.silent for each in split.parts):
            split.unknown_since = None
        elif split.unknown_since is None:
            split.unknown_since = tx.now - timedelta(seconds=SILENT_S)
        if report.answer is None:
            continue
        began = None if report.answer.status is None else report.answer.status.started_at
        if row.started_at is None and began is not None:
            row.started_at = min(max(began, row.submitted_at), tx.now)
        _move(tx, split, row)


def _known(part: PartState, report: PartReport) -> PartState:
    return part.model_copy(update={"silent": True}) if report.answer is None else heard(part, report.answer)


def _move(tx: WriteTx, split: SplitRow, row: JobRow) -> None:
    found = verdict(split.parts, row.state)
    split.closed = found.closed
    if found.outcome == "goes on":
        return
    end = {"again": JobState.QUEUED, "failed": JobState.FAILED, "succeeded": JobState.SUCCEEDED}[found.outcome]
    reason = storable(found.reason, MAX_REASON) if found.reason else None

    def walk(course: Course) -> None:
        course.move(end, reason)

    change(tx, row, walk)
    if found.outcome == "again":  # nothing of it is left anywhere
        tx.session.delete(split)
        tx.session.flush()


def _part_of(split: SplitRow, report: PartReport) -> PartState | None:
    """The part that a report is about."""
    about = (report.attempt, report.part, report.remote, report.region)
    return next((each for each in split.parts if (each.attempt, each.part, each.remote, each.region) == about), None)


def parts_of(tx: ReadTx, job: str) -> list[PartState]:
    """Where the parts of a job run or ran; empty for one that was not split."""
    split = tx.session.get(SplitRow, job)
    return [] if split is None else split.parts


def run_of(part: PartState) -> Decision:
    """A part as a job elsewhere, for what is asked about it."""
    return Decision(job=part.job, attempt=part.attempt, remote=part.remote, region=part.region)
