"""How other regions are asked: each with its own limits, so that one that does not answer delays nobody for long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import structlog
from pydantic import BaseModel

from ces_common.bus.port import BusError
from ces_common.messages.base import Message
from ces_federation.wire import Wire

log = structlog.get_logger()
LOOKS_AT_ONCE = 8  # of people, at what one region has: commits and the like do not wait for them
A = TypeVar("A", bound=BaseModel)


class Asker:
    """``clock``: steady. A region that has not answered in time, and of which nothing else was heard meanwhile, is
    ``silent`` until it is heard again, be it by a late answer."""

    def __init__(self, wire: Wire, regions: Iterable[str], clock: Callable[[], float]) -> None:
        self._wire, self._clock, self._began = wire, clock, clock()
        self._unanswered: dict[str, int] = {}  # region -> how many messages of it were heard by then
        self._looks = {region: asyncio.Semaphore(LOOKS_AT_ONCE) for region in regions}
        self._answered: dict[str, float] = {}  # region -> when

    @property
    def regions(self) -> list[str]:
        return sorted(self._looks)

    def silent(self, region: str) -> bool:
        """Whether nothing was heard of it since it last did not answer."""
        return self._unanswered.get(region) == self._wire.heard_of(region)

    def silent_s(self, region: str) -> float:
        """For how long it has answered nothing."""
        return self._clock() - self._answered.get(region, self._began)

    async def ask(self, region: str, operation: str, question: Message, model: type[A], timeout_s: float) -> A | None:
        """None without an answer that can be read, which says nothing of what was done."""
        heard = self._wire.heard_of(region)
        try:
            answer = model.model_validate_json(await self._wire.ask(region, operation, question.encode(), timeout_s))
        except (BusError, ValueError, KeyError) as error:  # KeyError: a region that is trusted no more
            log.info("a region does not answer", region=region, asked=operation, error=str(error)[:200])
            if heard == self._wire.heard_of(region):  # else it is there, and only this took it too long
                self._unanswered[region] = heard
            return None
        self._answered[region] = self._clock()
        return answer

    async def look(self, region: str, look: Callable[[], Awaitable[A | None]]) -> A | None:
        """For people, who ask again when they like: some at a time, and not at all of a region that is silent."""
        limit = self._looks.get(region)
        if limit is None or self.silent(region):
            return None
        async with limit:
            return await look()
