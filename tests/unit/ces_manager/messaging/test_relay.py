"""The outbox relay: in order, several at a time, and past what can never be sent."""

from __future__ import annotations

import asyncio

import pytest
from manager_world import World, ring

from ces_common.bus.port import BusUnavailable, PayloadTooLarge
from ces_common.db.outbox import unpublished_events
from ces_manager.messaging.relay import Relay


class Broker:
    """Stores facts once ``together`` of them are on their way."""

    def __init__(self, together: int = 1) -> None:
        self.stored: list[str] = []
        self.under_way: list[str] = []
        self.too_large: set[str] = set()
        self.away = False
        self._together, self._enough = together, asyncio.Event()

    async def publish_fact(self, subject: str, data: bytes, *, message_id: str, headers: object = None) -> bool:
        self.under_way.append(message_id)
        if len(self.under_way) >= self._together:
            self._enough.set()
        await self._enough.wait()
        if self.away:
            raise BusUnavailable("gone")
        if message_id in self.too_large:
            raise PayloadTooLarge(subject, len(data), 10)
        self.stored.append(message_id)
        return True


def unpublished(world: World) -> list[str]:
    with world.uow.read() as tx:
        return [event.id for event in unpublished_events(tx, 1000)]


def relay(world: World, broker: Broker) -> Relay:
    return Relay(world.uow, broker)


async def test_several_are_on_their_way_at_once_and_in_order(world: World) -> None:
    for number in range(5):
        world.submit(ring(f"job-{number}"))
    waiting, broker = unpublished(world), Broker(together=5)
    assert len(waiting) >= 5
    await asyncio.wait_for(relay(world, broker).step(), 60)
    assert broker.under_way == waiting
    assert sorted(broker.stored) == sorted(waiting)
    assert unpublished(world) == []


async def test_an_event_that_cannot_be_sent_holds_up_no_other(world: World) -> None:
    for number in range(3):
        world.submit(ring(f"job-{number}"))
    waiting, broker = unpublished(world), Broker()
    broker.too_large = {waiting[1]}
    await relay(world, broker).step()
    assert broker.stored == [waiting[0], *waiting[2:]]
    assert unpublished(world) == [], "it stays in the database, for whoever reads events there"


async def test_while_the_broker_is_away_nothing_counts_as_sent(world: World) -> None:
    world.submit(ring("job"))
    waiting, broker = unpublished(world), Broker()
    broker.away = True
    with pytest.raises(BusUnavailable):
        await relay(world, broker).step()
    assert unpublished(world) == waiting
    broker.away = False
    await relay(world, broker).step()
    assert broker.stored == waiting
