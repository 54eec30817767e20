"""A cluster in which applications are changed by themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from adjusting_scene import Scene
from manager_world import World
from memory_bus import MemoryBroker, MemoryBus


@pytest.fixture
async def scene(world: World) -> AsyncIterator[Scene]:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    made = Scene(world, bus)
    await made.open()
    yield made
    await bus.close()
    made.database.close()
