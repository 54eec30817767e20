"""Keeps the broker's streams and the bucket there, and as they should be: somebody may have deleted one, or the broker
may be a new one."""

from __future__ import annotations

import asyncio

import structlog

from ces_common.bus.port import Bus, BusError

log = structlog.get_logger()


class StreamKeeper:
    def __init__(self, bus: Bus, every_s: float) -> None:
        self._bus, self._every_s = bus, every_s
        self._wrong: str | None = None  # as last told

    async def made(self) -> None:
        """Wait until all is there. The servers of a cluster, which hold the replicas, may still be starting."""
        while True:
            if await self.look():
                return
            await asyncio.sleep(self._every_s)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self.look()

    async def look(self) -> bool:
        """Make what is missing and correct what differs; returns whether all is as it should be now. What is in the
        way is told once."""
        try:
            await self._bus.provision()
        except BusError as error:
            if str(error) != self._wrong:
                log.warning("the streams could not be checked or corrected", error=str(error))
            self._wrong = str(error)
            return False
        self._wrong = None
        return True
