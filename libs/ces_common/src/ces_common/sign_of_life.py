"""Signs of life: by them the managers know which controllers are at work, and so for whom time may count."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ces_common import subjects
from ces_common.bus.port import Bus, BusError
from ces_common.messages.reports import Alive

SIGN_OF_LIFE_S = 5.0
MOST_OFTEN_S = 1.0
SUBJECT = subjects.rpc("manager", "alive")


class SignOfLife:
    """Says that a service is at work while its last step has gone through. One that runs and cannot work, because it
    reads no state or can write none, is silent."""

    def __init__(self, bus: Bus, service: str) -> None:
        self._bus, self._sign = bus, Alive(service=service).encode()
        self._works = False
        self._told = float("-inf")

    def begin(self) -> None:
        """A step begins; it may hang or fail."""
        self._works = False

    async def end(self) -> None:
        """The step has gone through."""
        self._works = True
        if asyncio.get_running_loop().time() - self._told >= MOST_OFTEN_S:
            await self._tell()

    async def run(self) -> None:
        """Say it all the time between steps."""
        while True:
            if self._works:
                await self._tell()
            await asyncio.sleep(SIGN_OF_LIFE_S)

    async def _tell(self) -> None:
        with suppress(BusError):  # the next one will do
            await self._bus.publish(SUBJECT, self._sign)
            self._told = asyncio.get_running_loop().time()
