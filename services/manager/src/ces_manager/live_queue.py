"""The queue as the scheduler has it now, asked for when somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, NoResponder
from ces_common.messages.events import Standing
from ces_common.messages.queries import QueueAnswer, QueueQuery

log = structlog.get_logger()
ANSWER_S = 1.0  # whoever looks at the queue does not wait longer than this
FRESH_S = 1.0  # the pages of a long list, and many that look at once, cost the scheduler one answer
STORED = "in order of priority and age, with what it last told of each job"


@dataclass(frozen=True)
class Told:
    """The standings, first one first. ``remark``: why there are none; None where the scheduler has answered."""

    standings: Sequence[Standing] = ()
    remark: str | None = None

    @cached_property
    def by_job(self) -> dict[str, Standing]:
        return {standing.job: standing for standing in self.standings}


class LiveQueue:
    """``clock``: seconds, steady."""

    def __init__(self, bus: Bus, clock: Callable[[], float]) -> None:
        self._bus, self._clock = bus, clock
        self._asking = asyncio.Lock()
        self._told, self._until = Told(), float("-inf")

    async def look(self) -> Told:
        """What the scheduler says, no older than a second; without an answer, why there is none."""
        async with self._asking:
            if self._clock() >= self._until:
                self._told = await self._ask()
                self._until = self._clock() + FRESH_S
            return self._told

    async def _ask(self) -> Told:
        try:
            raw = await self._bus.request(subjects.rpc("scheduler", "queue"), QueueQuery().encode(), timeout_s=ANSWER_S)
            answer = await asyncio.to_thread(QueueAnswer.model_validate_json, raw)
        except (BusError, ValueError) as error:
            log.info("the scheduler's queue cannot be had", error=str(error))
            who = "no scheduler is there" if isinstance(error, NoResponder) else "the scheduler does not answer"
            return Told(remark=f"{who}: {STORED}")
        if not answer.version:
            return Told(remark=f"the scheduler has not looked at the queue yet: {STORED}")
        return Told(answer.standings)
