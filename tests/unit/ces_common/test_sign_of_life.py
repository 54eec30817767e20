"""Signs of life: told while work goes through, and only then."""

from __future__ import annotations

import asyncio

import pytest
from memory_bus import MemoryBroker, MemoryBus

from ces_common import sign_of_life
from ces_common.bus.port import Message
from ces_common.messages.reports import Alive
from ces_common.sign_of_life import SUBJECT, SignOfLife


@pytest.fixture
async def heard(bus: MemoryBus) -> asyncio.Queue[str]:
    told = asyncio.Queue[str]()

    async def hear(message: Message) -> None:
        told.put_nowait(Alive.model_validate_json(message.data).service)

    await bus.subscribe(SUBJECT, hear)
    return told


async def test_it_is_told_at_the_end_of_a_step_and_not_at_each_of_many(
    bus: MemoryBus, heard: asyncio.Queue[str]
) -> None:
    sign = SignOfLife(bus, "compute-ctl")
    for _ in range(100):
        sign.begin()
        await sign.end()
    assert await heard.get() == "compute-ctl"
    assert heard.empty()


async def test_it_is_told_between_steps_but_not_while_one_hangs(
    bus: MemoryBus, heard: asyncio.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_of_life, "SIGN_OF_LIFE_S", 0.0)
    sign = SignOfLife(bus, "network-ctl")
    telling = asyncio.create_task(sign.run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert heard.empty(), "nothing has gone through yet"
    await sign.end()
    for _ in range(5):
        assert await heard.get() == "network-ctl"
    sign.begin()
    for _ in range(10):
        await asyncio.sleep(0)
    while not heard.empty():
        heard.get_nowait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert heard.empty()
    telling.cancel()


async def test_a_bus_that_is_away_ends_nothing(broker: MemoryBroker) -> None:
    await SignOfLife(MemoryBus(broker), "compute-ctl").end()
