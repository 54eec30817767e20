"""Requests of which only the newest of each sender counts, answered in batches of all that wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from ces_common.bus.codec import ENCODING, unpack
from ces_common.bus.port import BatchHandler, BusError, Message, RemoteError, Subscription
from ces_common.latest import LatestBatches

log = structlog.get_logger(__name__)
LONGEST_PATIENCE_S: Final = 60.0

Answer = Callable[[bytes | BaseException], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Request:
    """``until``: when its sender gives up, on this process's clock."""

    message: Message
    until: float
    answer: Answer


class Lane:
    """``largest``: bytes that a request may have, expanded. Those that wait when it is closed stay unanswered."""

    def __init__(self, handler: BatchHandler, largest: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._handler, self._largest, self._clock = handler, largest, clock
        self._batches = LatestBatches(self._serve)

    async def offer(self, message: Message, patience_s: float, answer: Answer) -> None:
        """``patience_s``: how long its sender waits from now on."""
        size = len(message.data)
        if size > self._largest:
            await answer(RemoteError("too-large", f"a request here may have {self._largest} bytes, this has {size}"))
            return
        until = self._clock() + min(patience_s, LONGEST_PATIENCE_S)
        if not self._batches.put(message.subject, Request(message, until, answer), size):
            log.warning("a request is dropped: too many wait", subject=message.subject)

    async def close(self) -> None:
        await self._batches.close()

    async def _serve(self, requests: list[Request]) -> None:
        now = self._clock()
        wanted = [request for request in requests if now < request.until]
        if any(ENCODING in request.message.headers for request in wanted):
            expanded = await asyncio.to_thread(self._expanded, wanted)
        else:
            expanded = [request.message for request in wanted]
        good = []
        for request, message in zip(wanted, expanded, strict=True):
            if isinstance(message, Message):
                good.append((request, message))
            else:
                await request.answer(RemoteError("malformed", str(message)))
        if good:
            answers = await self._answers([message for _, message in good])
            for (request, _), answer in zip(good, answers, strict=True):
                await request.answer(answer)

    async def _answers(self, messages: list[Message]) -> list[bytes | RemoteError]:
        try:
            return await self._handler(messages)
        except RemoteError as error:
            return [error] * len(messages)
        except Exception as error:
            log.exception("a batch of requests failed", requests=len(messages))
            return [RemoteError("internal", f"{type(error).__name__}: {error}")] * len(messages)

    def _expanded(self, requests: list[Request]) -> list[Message | BusError]:
        found: list[Message | BusError] = []
        for request in requests:
            message = request.message
            try:
                data = unpack(message.data, message.headers, self._largest)
                found.append(Message(message.subject, data, message.headers))
            except BusError as error:
                found.append(error)
        return found


@dataclass(frozen=True, slots=True)
class LaneSubscription:
    """What brings a lane its requests, closed together with it."""

    source: Subscription
    lane: Lane

    async def close(self) -> None:
        await self.source.close()
        await self.lane.close()
