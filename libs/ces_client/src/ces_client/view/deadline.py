"""A job's deadline in words."""

from __future__ import annotations

from datetime import datetime

from ces_client.view.formats import DASH, moment
from ces_common.messages.api import JobSummary, JobView, PlanForecast
from ces_common.states import JobState


def deadline_text(job: JobSummary, now: datetime) -> str:
    """``14:02, ends about 13:40``, ``14:02, late: ends about 15:10``; a dash for a job without. Times of day are in the
    zone of ``now``."""
    if job.deadline_at is None:
        return DASH
    due = moment(job.deadline_at, now)
    if job.state is JobState.SUCCEEDED and job.finished_at is not None:
        return f"{due}, kept" if job.finished_at <= job.deadline_at else f"{due}, missed"
    if job.finished_at is not None or job.expected_end_at is None:
        return due
    late = "late: " if job.expected_end_at > job.deadline_at else ""
    return f"{due}, {late}ends about {moment(job.expected_end_at, now)}"


def policy_text(job: JobView) -> str:
    """What becomes of it where the deadline cannot be kept."""
    if job.deadline is None:
        return ""
    return "or it is refused" if job.deadline.policy == "refuse" else "or it runs late"


def end_text(answer: PlanForecast, now: datetime) -> str | None:
    """When a job that was not submitted would have ended; None where it has no deadline, or cannot be in time."""
    if answer.end_at is None or (answer.reason is not None and answer.reason.code == "deadline"):
        return None
    return f"it is expected to have ended at about {moment(answer.end_at, now)}"
