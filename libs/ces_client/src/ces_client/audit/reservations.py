"""Checks that jobs with a reservation started by the time that was reserved for them.

A reservation rests on the durations that running jobs declare and on the cluster as it is. So it no longer counts once
a job has run for longer than it declared, a node or link was lost or changed, or a job was suspended. (A job without a
declared duration is assumed to run forever, so no reservation rests on its end.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ces_client.audit.inventory import JobRequest

GRACE_S = 5.0
"""Delay allowed between the end of one job and the start of the job that waited for it: reports, scheduling, commit."""


@dataclass(frozen=True)
class Reservation:
    """``made``: when event number ``event`` told of it. ``start_by``: the latest start that it allows."""

    made: datetime
    start_by: datetime
    event: int


class Reservations:
    """Reservations of waiting jobs, and how long running jobs hold their place. Times are those of the log; a running
    job whose file is unknown excuses every late start. ``checked``: reservations of jobs that have started."""

    def __init__(self) -> None:
        self.checked = 0
        self._expected_s: dict[str, float | None] = {}  # by job, where the job file is known
        self._made: dict[str, list[Reservation]] = {}
        self._began: dict[str, datetime] = {}  # by job, while it holds anything
        self._overran: datetime | None = None  # the last time that a job exceeded its declared duration
        self._disturbed: datetime | None = None
        self._suspended: dict[str, datetime] = {}

    def reserve(self, job: str, event: int, time: str, start_at: str) -> None:
        """Capacity is reserved for a waiting job, which is to start at ``start_at``."""
        reservation = Reservation(_moment(time), _moment(start_at), event)
        self._made.setdefault(job, []).append(reservation)

    def withdraw(self, job: str) -> None:
        """The job no longer waits."""
        self._made.pop(job, None)

    def disturb(self, time: str) -> None:
        """The cluster has changed."""
        self._disturbed = _moment(time)

    def begin(self, job: str, time: str, request: JobRequest | None) -> Iterator[str]:
        """The job holds capacity from now on. Yields a text for each reservation of it that was broken."""
        now = _moment(time)
        yield from self._broken(job, now)
        self._began[job] = now
        if request is not None:
            self._expected_s[job] = request.expected_s

    def suspend(self, job: str, time: str) -> None:
        """The job holds less and makes no progress, so it will hold the rest for longer than it declared."""
        self._suspended[job] = self._disturbed = _moment(time)

    def resume(self, job: str, time: str) -> Iterator[str]:
        """The job runs again. Yields a text for each reservation of it that was broken."""
        now = _moment(time)
        yield from self._broken(job, now)
        suspended = self._suspended.pop(job, None)
        if suspended is not None and job in self._began:
            self._began[job] += now - suspended

    def end(self, job: str, time: str) -> None:
        """The job has released everything."""
        self._suspended.pop(job, None)
        began = self._began.pop(job, None)
        now = _moment(time)
        if began is not None and self._overruns(job, began, now):
            self._overran = now

    def _broken(self, job: str, now: datetime) -> Iterator[str]:
        for reservation in self._made.pop(job, []):
            self.checked += 1
            late_s = (now - reservation.start_by).total_seconds()
            if late_s > GRACE_S and not self._excused(reservation, now):
                yield (
                    f"job {job} starts {late_s:.1f} s later than event {reservation.event} reserved, though no job "
                    "overran its declared duration"
                )

    def _excused(self, reservation: Reservation, now: datetime) -> bool:
        if any(self._overruns(job, began, now) for job, began in self._began.items()):
            return True
        return any(moment is not None and moment >= reservation.made for moment in (self._overran, self._disturbed))

    def _overruns(self, job: str, began: datetime, until: datetime) -> bool:
        if job not in self._expected_s:
            return True
        expected_s = self._expected_s[job]
        return expected_s is not None and (until - began).total_seconds() > expected_s


def _moment(time: str) -> datetime:
    return datetime.fromisoformat(time)
