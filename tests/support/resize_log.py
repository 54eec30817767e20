"""The log of a job that was resized once, and what its rank 0 wrote down, for tests of the mix."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ulid import ULID

START = 1_700_000_000.0


def event(kind: str, at: float, job: str = "j", **data: Any) -> dict[str, Any]:
    time = datetime.fromtimestamp(START + at, UTC).isoformat()
    return {"type": f"ces.v1.{kind}", "subject": job, "time": time, "data": {"job": job, **data}}


def committed(decided: float, at: float, job: str = "j") -> dict[str, Any]:
    resize = str(ULID.from_timestamp(START + decided))
    return event("resize.committed", at, job, resize=resize, before=4, size=2)


def note(kind: str, at: float) -> dict[str, Any]:
    return {"kind": kind, "at": START + at, "size": 2, "step": 5} | ({"lost": 2} if kind == "begins" else {})


LOG = [
    event("job.running", 0.0),
    committed(10.0, 10.25),
    event("job.resizing", 10.25),
    event("allocation.stopping", 10.25),
    event("resize.ended", 11.25, done=True),
    event("job.deadline", 11.3),
    event("job.starting", 11.75),
    event("job.running", 12.75),
    event("job.succeeded", 40.0),
]
NOTES = [
    note("begins", 0.5), note("steps", 1.0), note("told", 10.5), note("saved", 10.75), note("begins", 12.5),
    note("steps", 13.0), note("ends", 39.0),
]  # fmt: skip
