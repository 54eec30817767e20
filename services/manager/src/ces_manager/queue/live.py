"""The live queue: the scheduler is asked when somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, NoResponder
from ces_common.messages.events import QueueStatus
from ces_common.messages.queries import QueueAnswer, QueueQuery

log = structlog.get_logger()
ANSWER_S = 1.0  # nobody who looks at the queue waits longer
FRESH_S = 1.0  # pages of a long list, and many lookers at once, cost the scheduler one answer
STORED = "in order of priority and age, with what it last told of each job"


@dataclass(frozen=True)
class QueueReport:
    """The scheduler's report, in queue order. ``remark``: why there is none; None where the scheduler has answered."""

    statuses: Sequence[QueueStatus] = ()
    remark: str | None = None

    @cached_property
    def by_job(self) -> dict[str, QueueStatus]:
        return {queue_status.job: queue_status for queue_status in self.statuses}


class LiveQueue:
    """``clock``: seconds, steady."""

    def __init__(self, bus: Bus, clock: Callable[[], float]) -> None:
        self._bus, self._clock = bus, clock
        self._asking = asyncio.Lock()
        self._report, self._until = QueueReport(), float("-inf")

    async def look(self) -> QueueReport:
        """What the scheduler says, no older than a second; without an answer, why there is none."""
        async with self._asking:
            if self._clock() >= self._until:
                self._report = await self._ask()
                self._until = self._clock() + FRESH_S
            return self._report

    async def _ask(self) -> QueueReport:
        try:
            raw = await self._bus.request(subjects.rpc("scheduler", "queue"), QueueQuery().encode(), timeout_s=ANSWER_S)
            answer = await asyncio.to_thread(QueueAnswer.model_validate_json, raw)
        except (BusError, ValueError) as error:
            log.info("the scheduler's queue cannot be had", error=str(error))
            who = "no scheduler is there" if isinstance(error, NoResponder) else "the scheduler does not answer"
            return QueueReport(remark=f"{who}: {STORED}")
        if not answer.version:
            return QueueReport(remark=f"the scheduler has not looked at the queue yet: {STORED}")
        return QueueReport(answer.statuses)
