"""The keeper of the streams goes on looking, whatever the broker says."""

from __future__ import annotations

import asyncio

from memory_bus import MemoryBroker, MemoryBus
from structlog.testing import capture_logs

from ces_common.bus.port import BusError
from ces_manager.messaging.streams import StreamKeeper


class FailingBus(MemoryBus):
    """Fails to provision as often as told."""

    def __init__(self, failures: list[str]) -> None:
        super().__init__(MemoryBroker())
        self.failures = failures
        self.looks = 0
        self.looked = asyncio.Event()

    async def provision(self) -> None:
        self.looks += 1
        self.looked.set()
        if self.failures:
            raise BusError(self.failures.pop(0))


async def test_it_waits_until_all_is_there_and_tells_each_reason_once() -> None:
    bus = FailingBus(["no quorum", "no quorum", "no disk", "no quorum"])
    with capture_logs() as logs:
        await StreamKeeper(bus, 0.001).made()
    assert bus.looks == 5
    assert [each["error"] for each in logs] == ["no quorum", "no disk", "no quorum"]


async def test_it_looks_again_and_again() -> None:
    bus = FailingBus([])
    keeping = asyncio.create_task(StreamKeeper(bus, 0.001).run())
    for _ in range(3):
        bus.failures.append("gone")
        bus.looked.clear()
        await bus.looked.wait()
    keeping.cancel()
