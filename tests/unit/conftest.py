"""A bus in memory, and the manager on it as the scheduler and the controllers see it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from bus_manager import FakeManager
from memory_bus import MemoryBroker, MemoryBus


@pytest.fixture(scope="session")
def policy_compiled() -> None:
    """What solvers use that ask a policy, and the quickest one."""
    from evolving_policies import problems

    from ces_core.search.greedy import GREEDY

    problems(range(2))
    problems(range(2), solver=GREEDY)


@pytest.fixture(scope="session")
def training_compiled(policy_compiled: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """And what imitation uses that teaches them."""
    from compile_training import KINDS, compile_ahead

    compile_ahead("placement", KINDS["placement"][1:], tmp_path_factory.mktemp("compiled"))


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
