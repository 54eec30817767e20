"""What managers tell each other."""

from __future__ import annotations

import asyncio
import json

import pytest
from memory_bus import MemoryBroker, MemoryBus

from ces_common.bus.port import Message
from ces_common.messages.reports import Heartbeat
from ces_common.sign_of_life import SIGN_OF_LIFE_S
from ces_manager.messaging.peers import AT_ONCE, AWAY_S, NEWS, SENDER, Beat, Peers, packed


class Desk:
    """Managers on one bus, and the signs of life that they gave. Their clock is moved by hand."""

    def __init__(self) -> None:
        self.broker, self.now = MemoryBroker(), 0.0
        self.signs: list[str] = []
        self.measured: dict[str, list[Heartbeat]] = {}

    async def open(self) -> None:
        self.bus = MemoryBus(self.broker)
        await self.bus.connect()
        await self.bus.subscribe(NEWS, self._sign)

    async def _sign(self, message: Message) -> None:
        self.signs.append(message.headers[SENDER])

    async def manager(self, name: str) -> Peers:
        bus = MemoryBus(self.broker)
        await bus.connect()
        peers = Peers(bus, name, lambda: self.now)
        known = self.measured[name] = []
        await peers.start(lambda: None, known.append)
        return peers


@pytest.fixture
async def desk() -> Desk:
    made = Desk()
    await made.open()
    return made


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_one_that_commits_all_the_time_says_that_it_is_there_all_the_same(desk: Desk) -> None:
    """Or two of them would never hear each other, if the first word was lost."""
    peers = await desk.manager("one")
    running = asyncio.create_task(peers.run())
    for _ in range(10):
        peers.hint.set()
        await settled()
    assert desk.signs == ["one"], "nobody hears, so it does not tell of each commit"
    desk.now += SIGN_OF_LIFE_S
    peers.hint.set()
    await settled()
    assert desk.signs == ["one"] * 2
    running.cancel()


async def test_each_commit_is_told_while_another_is_there(desk: Desk) -> None:
    peers = await desk.manager("one")
    running = asyncio.create_task(peers.run())
    await desk.bus.publish(NEWS, b"", headers={SENDER: "two"})
    await settled()
    told = desk.signs.count("one")
    for _ in range(3):
        peers.hint.set()
        await settled()
    assert desk.signs.count("one") == told + 3
    desk.now += AWAY_S
    peers.hint.set()
    peers.hint.set()
    await settled()
    assert desk.signs.count("one") == told + 4, "a sign of life, since the last was long ago"
    peers.hint.set()
    await settled()
    assert desk.signs.count("one") == told + 4
    running.cancel()


async def test_measurements_go_to_others_alone_and_only_while_there_are_any(desk: Desk) -> None:
    one, _ = await desk.manager("one"), await desk.manager("two")
    beat = Heartbeat(node="a", boot="b", cpu=3)
    one.share([Beat("a", beat.encode())])
    await asyncio.sleep(0.05)
    assert desk.measured == {"one": [], "two": []}
    await desk.bus.publish(NEWS, b"", headers={SENDER: "two"})
    await settled()
    one.share([Beat("a", beat.encode())])
    async with asyncio.timeout(60):
        while not desk.measured["two"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert desk.measured == {"one": [], "two": [beat]}


def test_many_are_packed_into_messages_of_some_size() -> None:
    beats = [Beat(f"n{i}", json.dumps({"n": i, "more": "x" * 100_000}).encode()) for i in range(12)]
    messages = list(packed(beats))
    assert [each["n"] for message in messages for each in json.loads(message)] == list(range(12))
    assert len(messages) == 2
    assert all(AT_ONCE <= len(message) < 2 * AT_ONCE for message in messages)
    assert list(packed([])) == []
