from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from bus_manager import FakeManager
from memory_bus import MemoryBus
from scheduler_steps import LINKS, NODES, Clock, scheduler_on

from ces_core.registry import DEFAULT, get_solver
from ces_core.warm_up import warm_up
from ces_scheduler.service import EVENTS, Scheduler


@pytest.fixture(scope="session")
def compiled() -> None:
    """Nobody's patience is meant to last for this."""
    warm_up(get_solver(DEFAULT))


@pytest.fixture
def wired(manager: FakeManager) -> FakeManager:
    """The manager of a cluster on which two tasks have a place."""
    manager.change(nodes=NODES, links=LINKS)
    return manager


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def scheduler(compiled: None, bus: MemoryBus, clock: Clock) -> AsyncIterator[Scheduler]:
    """Steps are taken by the test; its ears are open as in service."""
    scheduler = scheduler_on(bus, clock)
    await scheduler.reader.start(EVENTS, scheduler._event)
    yield scheduler
    await scheduler.reader.close()


@pytest.fixture
async def running(compiled: None, bus: MemoryBus, wired: FakeManager, clock: Clock) -> AsyncIterator[Scheduler]:
    """It serves by itself, and looks at the state only when it hears of something."""
    scheduler = scheduler_on(bus, clock, resync_s=3600)
    task = asyncio.create_task(scheduler.run())
    await wired.until(lambda: wired.asked > 0)
    yield scheduler
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await scheduler.reader.close()
