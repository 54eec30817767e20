"""What the agent's tests share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agent_world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.open()
    yield world
    await world.stop()
    await world.bus.close()
