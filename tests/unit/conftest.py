"""A bus in memory, and the manager on it as the scheduler and the controllers see it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from bus_manager import FakeManager
from memory_bus import MemoryBroker, MemoryBus


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
async def bus(broker: MemoryBroker) -> AsyncIterator[MemoryBus]:
    bus = MemoryBus(broker)
    await bus.connect()
    yield bus
    await bus.close()


@pytest.fixture
async def manager(bus: MemoryBus) -> FakeManager:
    """Of nothing yet."""
    manager = FakeManager(bus)
    await manager.open()
    return manager
