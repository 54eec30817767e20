"""Tells the manager why each waiting job waits, as ``plan.refused`` events, and only when that has changed.

:func:`ces_scheduler.queue_status.is_news` says what counts as a change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import structlog

from ces_common.bus.port import Bus
from ces_common.messages.events import PlanRefused, QueueStatus, Reason, new_event
from ces_common.messages.records import JobRecord
from ces_scheduler.queue_status import LastReport, is_news

log = structlog.get_logger()


class StatusReports:
    """The last report of each waiting job. The scheduler's service makes one and calls it in every cycle of the queue.

    ``source`` names the service in its events; ``now`` returns the time of day.
    """

    def __init__(self, bus: Bus, source: str, now: Callable[[], datetime]) -> None:
        self._bus, self._source, self._now = bus, source, now
        self._last: dict[str, LastReport] = {}
        self._unsettled: list[str] = []  # reported since the last call of settle, by when they may have left

    def settle(self, queued: Mapping[str, JobRecord], changed: Sequence[str] | None) -> None:
        """Forget the reports of all jobs but those in ``queued``, and of jobs that wait in another attempt by now.
        ``changed``: the jobs that may not be as they were at the last call; None: all."""
        doubtful, self._unsettled = self._unsettled, []
        for job in list(self._last) if changed is None else (*changed, *doubtful):
            last = self._last.get(job)
            if last is not None and (job not in queued or queued[job].attempt != last.attempt):
                del self._last[job]

    def forget(self, job: str) -> None:
        """Forget the report of a job (by its id) for which a plan was proposed: if it waits again, that is news."""
        self._last.pop(job, None)

    async def report(self, job: JobRecord, reason: Reason, status: QueueStatus | None, version: int) -> bool:
        """Publish why the job waits, if that is news; returns whether it was. Raises BusError.

        ``version``: of the database that the decision was made from.
        """
        now = self._now()
        report = LastReport.of(job.attempt, reason, status, now)
        if not is_news(report, self._last.get(job.id)):
            return False
        refused = PlanRefused(job=job.id, attempt=job.attempt, version=version, reason=reason, queue_status=status)
        event = new_event(self._source, "plan", "refused", job.id, refused, now)
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
        self._last[job.id] = report  # only now: a report that failed must be made again
        self._unsettled.append(job.id)
        log.info("no place for a job", job=job.id, version=version, reason=reason.text)
        return True
