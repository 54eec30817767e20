"""What the region's federation service asks this manager over the bus."""

from __future__ import annotations

from ces_common import subjects
from ces_common.bus.port import Bus, Message
from ces_manager.database import Database
from ces_manager.messaging.answers import answering
from ces_manager.queue.live import LiveQueue
from ces_manager.regions.totals import totals

QUEUE = "manager"


class RegionRequests:
    def __init__(self, bus: Bus, database: Database, live_queue: LiveQueue) -> None:
        self._bus, self._database, self._live_queue = bus, database, live_queue

    async def serve(self) -> None:
        await self._bus.serve(subjects.rpc("manager", "region-totals"), self._totals, largest=0, queue=QUEUE)

    async def _totals(self, _: Message) -> bytes:
        report, now = await self._live_queue.look(), self._database.clock.now()
        with answering("totals"):
            return (await self._database.read(lambda tx: totals(tx, report.statuses, now))).encode()
