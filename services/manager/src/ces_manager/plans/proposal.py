"""What proposals about placed jobs have in common: they are refused whole, and a job must be as they assume."""

from __future__ import annotations

from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_manager.jobs.transitions import find_job


class Refused(Exception):
    """Why a proposal cannot be committed."""


class Stale(Refused):
    """A job is not as it was at the version that the proposal was made from."""


def job_at(tx: ReadTx, job: str, attempt: int, version: int) -> JobRow:
    """The job, if it is at this attempt and has not changed since this version. Raises Stale."""
    row = find_job(tx, job)
    if row is None:
        raise Stale(f"no job {job}")
    if row.attempt != attempt:
        raise Stale(f"job {row.name} is at attempt {row.attempt}, the proposal is for {attempt}")
    if row.version > version:
        raise Stale(f"job {row.name} has changed since version {version}")
    return row
