"""What managers that run side by side tell each other: that they are there, that something was committed, and what
nodes measured, since each heartbeat comes to one of them alone. A manager that hears no other says little."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog
from pydantic import TypeAdapter

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, Message
from ces_common.latest import LatestBatches
from ces_common.messages.reports import Heartbeat
from ces_common.service import Hint
from ces_common.sign_of_life import SIGN_OF_LIFE_S

log = structlog.get_logger()
NEWS = subjects.rpc("manager", "news")
MEASURED = subjects.rpc("manager", "measured")
SENDER = "Ces-Manager"  # header: which process says it
AWAY_S = 3 * SIGN_OF_LIFE_S
AT_ONCE = 512 * 1024  # bytes in one message; the last heartbeat in it may go beyond
_BEATS = TypeAdapter(list[Heartbeat])


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat as its node sent it, once it was found good."""

    node: str
    data: bytes


class Peers:
    """``process`` names this one. ``clock``: seconds, steady. ``hint`` it after each commit."""

    def __init__(self, bus: Bus, process: str, clock: Callable[[], float]) -> None:
        self._bus, self._process, self._clock = bus, process, clock
        self._heard = float("-inf")  # when another was heard last
        self._waiting = LatestBatches(self._send)
        self.hint = Hint()

    async def start(self, news: Callable[[], None], measured: Callable[[Heartbeat], None]) -> None:
        """Begin to hear the others. ``news``: called when one may have committed something; ``measured``: with each
        heartbeat that came to another."""

        async def tell_news(message: Message) -> None:
            if self._is_another(message):
                news()

        async def take(message: Message) -> None:
            if not self._is_another(message):
                return
            try:
                beats = await asyncio.to_thread(_BEATS.validate_json, message.data)
            except ValueError as error:
                log.warning("measurements of another manager are ignored", error=str(error)[:300])
                return
            for beat in beats:
                measured(beat)

        await self._bus.subscribe(NEWS, tell_news)
        await self._bus.subscribe(MEASURED, take)

    async def run(self) -> None:
        """Give signs of life, and tell of commits while somebody hears."""
        while True:
            await self._say(NEWS, b"")
            told = self._clock()
            while await self.hint.wait(SIGN_OF_LIFE_S):  # else nothing was committed all the while
                if self._present() or self._clock() - told >= SIGN_OF_LIFE_S:
                    break

    def share(self, beats: Sequence[Beat]) -> None:
        """Tell the others what nodes measured; of each node's heartbeats that wait to be sent, the newest."""
        if self._present():
            for beat in beats:
                self._waiting.put(beat.node, beat, len(beat.data))

    def _present(self) -> bool:
        return self._clock() - self._heard < AWAY_S

    def _is_another(self, message: Message) -> bool:
        if message.headers.get(SENDER) == self._process:
            return False
        self._heard = self._clock()
        return True

    async def _send(self, beats: list[Beat]) -> None:
        for data in packed(beats):
            await self._say(MEASURED, data)

    async def _say(self, subject: str, data: bytes) -> None:
        with suppress(BusError):  # the next one will do
            await self._bus.publish(subject, data, headers={SENDER: self._process})


def packed(beats: Sequence[Beat]) -> Iterator[bytes]:
    """JSON lists of heartbeats. Pure."""
    some: list[bytes] = []
    size = 0
    for beat in beats:
        some.append(beat.data)
        size += len(beat.data)
        if size >= AT_ONCE:
            yield b"[" + b",".join(some) + b"]"
            some, size = [], 0
    if some:
        yield b"[" + b",".join(some) + b"]"
