"""Whether jobs for which room was kept started when they were promised to.

A promise rests on what running jobs say of their durations, and on the cluster as it is. So it is off once a job that
ran meanwhile has held its place for longer than it said, and once a node or link was lost or changed, or a job was
suspended. (A job that says nothing is taken to run for ever, so no promise rests on its end.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ces_client.audit.ground import Asked

GRACE_S = 5.0
"""What it may take from the end that a job waited for to its own start: reports, a look at the queue, a commit."""


@dataclass(frozen=True)
class Promise:
    made: datetime
    start_by: datetime
    event: int


class Promises:
    """Times are those of the log. Where nobody knows what a running job said, it excuses all."""

    def __init__(self) -> None:
        self._expected_s: dict[str, float | None] = {}  # of those whose job file is known
        self._made: dict[str, list[Promise]] = {}
        self._began: dict[str, datetime] = {}  # of those that hold something
        self._overran: datetime | None = None  # when a job last held something for longer than it had said
        self._disturbed: datetime | None = None
        self._suspended: dict[str, datetime] = {}

    def promise(self, job: str, event: int, time: str, start_at: str) -> None:
        """Room is kept for a waiting job."""
        promise = Promise(_moment(time), _moment(start_at), event)
        self._made.setdefault(job, []).append(promise)

    def withdraw(self, job: str) -> None:
        """The job does not wait any more."""
        self._made.pop(job, None)

    def disturb(self, time: str) -> None:
        """The cluster has changed."""
        self._disturbed = _moment(time)

    def begin(self, job: str, time: str, asked: Asked | None) -> Iterator[str]:
        """The job holds something from now on; says which promise to it is broken."""
        now = _moment(time)
        yield from self._broken(job, now)
        self._began[job] = now
        if asked is not None:
            self._expected_s[job] = asked.expected_s

    def suspend(self, job: str, time: str) -> None:
        """The job holds less, and does not run; so it will hold the rest for longer."""
        self._suspended[job] = self._disturbed = _moment(time)

    def resume(self, job: str, time: str) -> Iterator[str]:
        """The job runs on; says which promise to it is broken."""
        now = _moment(time)
        yield from self._broken(job, now)
        suspended = self._suspended.pop(job, None)
        if suspended is not None and job in self._began:
            self._began[job] += now - suspended

    def end(self, job: str, time: str) -> None:
        """The job holds nothing any more."""
        self._suspended.pop(job, None)
        began = self._began.pop(job, None)
        now = _moment(time)
        if began is not None and self._overruns(job, began, now):
            self._overran = now

    def _broken(self, job: str, now: datetime) -> Iterator[str]:
        for promise in self._made.pop(job, []):
            late_s = (now - promise.start_by).total_seconds()
            if late_s > GRACE_S and not self._excused(promise, now):
                yield (
                    f"job {job} starts {late_s:.1f} s later than event {promise.event} promised, though no job overran "
                    "what it had said"
                )

    def _excused(self, promise: Promise, now: datetime) -> bool:
        if any(self._overruns(job, began, now) for job, began in self._began.items()):
            return True
        return any(moment is not None and moment >= promise.made for moment in (self._overran, self._disturbed))

    def _overruns(self, job: str, began: datetime, until: datetime) -> bool:
        if job not in self._expected_s:
            return True
        expected_s = self._expected_s[job]
        return expected_s is not None and (until - began).total_seconds() > expected_s


def _moment(time: str) -> datetime:
    return datetime.fromisoformat(time)
