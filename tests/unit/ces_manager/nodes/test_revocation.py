"""The broker refuses the keys of forgotten nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import pytest
from manager_world import World

from ces_common.bus.port import BusUnavailable
from ces_manager.database import Database
from ces_manager.nodes import revocation
from ces_manager.nodes.revocation import Revoker

NODES = ["a", "b", "c", "d"]


def silence(world: World, *nodes: str) -> None:
    """Let these nodes be lost."""
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat(*(node for node in NODES if node not in nodes))
    world.expire()


class Broker:
    """What the broker was told to refuse, and what it was asked in vain."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.away = True
        self.tried = asyncio.Event()

    async def revoke(self, users: Collection[str]) -> bool:
        self.tried.set()
        if self.away:
            raise BusUnavailable("away")
        news = not self.refused.issuperset(users)
        self.refused.update(users)
        return news


async def test_the_broker_is_told_as_soon_as_it_can_be(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "RETRY_S", 0.01)
    silence(world, "a")
    world.forget("a")
    database, broker = Database(world.uow), Broker()
    keeper = Revoker(database, broker)
    assert await keeper.apply() == "pending"
    running = asyncio.create_task(keeper.run())
    broker.away = False
    await until(broker, lambda: len(broker.refused) == 1)
    broker.refused.clear()  # another broker, with nothing of the old one's
    await keeper.reconnected()
    await until(broker, lambda: len(broker.refused) == 1)
    running.cancel()
    assert await Revoker(database, None).apply() == "kept"
    database.close()


async def until(broker: Broker, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            broker.tried.clear()
            await broker.tried.wait()
