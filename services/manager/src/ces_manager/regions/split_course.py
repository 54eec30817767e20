"""The course of a job that is split over regions, as its home sees it. Pure.

Nothing starts until every region has committed its part and has its network in place; and the job is queued again only
where that never was, and every region says that nothing of it is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ces_common.messages.split import PartAnswer, PartState, PartWord
from ces_common.states import JOB_OVER, JobState


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the job. ``again``: it is queued as its next attempt; ``closed``: nothing more is asked of any
    region, whatever becomes of it."""

    outcome: Literal["goes on", "again", "failed", "succeeded"] = "goes on"
    reason: str | None = None
    closed: bool = False


def heard(part: PartState, answer: PartAnswer) -> PartState:
    """The part with what its region says of it. What was said once stays said, but for the database that has lost it:
    that one's ``unknown`` is taken as an end."""
    status = answer.status
    failed = status is not None and status.state in JOB_OVER and not succeeded(status.state)
    committed = answer.fate == "committed"
    return part.model_copy(
        update={
            "committed": part.committed or committed,
            "ready": part.ready or (committed and answer.ready),
            "started": part.started or answer.started,
            "silent": False,
            "over": part.over or answer.over,
            "lost": part.lost or failed or answer.fate in ("released", "unknown"),
            "state": part.state if status is None else status.state,
            "reason": (None if status is None else status.reason) or answer.reason or part.reason,
        }
    )


def succeeded(state: JobState | None) -> bool:
    return state is JobState.SUCCEEDED


def may_have_run(parts: Sequence[PartState]) -> bool:
    """Whether any part may have been told to start: that is said once all are ready, and its answer can be lost."""
    return any(part.started for part in parts) or all(part.committed and part.ready for part in parts)


def words(parts: Sequence[PartState], state: JobState) -> list[PartWord | None]:
    """What each part's region is to be told or asked next; None: nothing more. ``state``: of the job at home."""
    if state in JOB_OVER or any(part.lost for part in parts):
        return [None if part.over else "release" for part in parts]
    if not all(part.committed for part in parts):
        return ["status" if part.committed else "commit" for part in parts]
    if not all(part.ready for part in parts):
        return ["status" for part in parts]
    return [None if part.over else "status" if part.started else "start" for part in parts]


def verdict(parts: Sequence[PartState], state: JobState) -> Verdict:
    closed = all(part.over for part in parts)
    if state in JOB_OVER:
        return Verdict(closed=closed)
    lost = next((part for part in parts if part.lost), None)
    if lost is not None:
        reason = f"its part in region {lost.region}: {lost.reason or 'nothing of it is left'}"
        if may_have_run(parts):
            return Verdict("failed", reason, closed)
        return Verdict("again", reason, closed) if closed else Verdict()
    if all(succeeded(part.state) for part in parts):
        return Verdict("succeeded", closed=closed)
    return Verdict()
