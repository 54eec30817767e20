from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.bus.port import Message, RequestTimeout
from ces_federation import wire as wire_module
from ces_federation.seals import key_of, seal
from ces_federation.wire import BURST, LARGEST, Wire

KEY = key_of("a secret of a and b alone")


@pytest.fixture
async def bus(broker: MemoryBroker) -> AsyncIterator[MemoryBus]:
    bus = MemoryBus(broker)
    await bus.connect()
    yield bus
    await bus.close()


async def made(bus: MemoryBus, region: str, other: str, key: bytes = KEY) -> Wire:
    wire = Wire(bus, region, {other: key}, lambda: 1000.0)
    await wire.start()
    return wire


async def test_a_question_is_answered(bus: MemoryBus) -> None:
    a, b = await made(bus, "a", "b"), await made(bus, "b", "a")

    async def double(region: str, data: bytes) -> bytes:
        return f"{region} said {data.decode()}".encode()

    b.on("say", double)
    assert await a.ask("b", "say", b"hello") == b"a said hello"


async def test_without_the_pairs_token_nobody_is_heard(bus: MemoryBus) -> None:
    a, b = await made(bus, "a", "b", key_of("another secret")), await made(bus, "b", "a")
    heard: list[bytes] = []

    async def note(_: str, data: bytes) -> bytes:
        heard.append(data)
        return b"ok"

    b.on("say", note)
    with pytest.raises(RequestTimeout):
        await a.ask("b", "say", b"hello", 0.1)
    assert heard == []


async def test_an_answer_cannot_be_forged(bus: MemoryBus) -> None:
    """Whoever sees the question cannot answer in b's name."""
    a = await made(bus, "a", "b")
    b = MemoryBus(bus._broker)
    await b.connect()

    async def forge(message: Message) -> None:
        _, _, _, id_ = subjects.parse_between_regions(message.subject)
        subject = subjects.between_regions("a", "b", "answer", id_)
        await b.publish(subject, seal(key_of("a guess"), subject, b"forged", 1000.0))

    await b.subscribe(subjects.of_region("b", "*"), forge)
    with pytest.raises(RequestTimeout):
        await a.ask("b", "say", b"hello", 0.1)
    await b.close()


async def test_what_was_heard_once_is_not_done_again(bus: MemoryBus) -> None:
    b, done = await made(bus, "b", "a"), asyncio.Event()
    heard: list[bytes] = []

    async def note(_: str, data: bytes) -> bytes:
        heard.append(data)
        if data == b"last":
            done.set()
        return b""

    b.on("say", note)
    subject = subjects.between_regions("b", "a", "say", "1")
    sealed = seal(KEY, subject, b"once", 1000.0)
    for _ in range(3):
        await bus.publish(subject, sealed)
    last = subjects.between_regions("b", "a", "say", "2")
    await bus.publish(last, seal(KEY, last, b"last", 1000.0))
    await done.wait()
    assert heard == [b"once", b"last"]


async def test_a_region_that_says_too_much_or_too_large_things_is_not_heard(bus: MemoryBus) -> None:
    b = await made(bus, "b", "a")
    heard: list[bytes] = []

    async def note(_: str, data: bytes) -> bytes:
        heard.append(data)
        return b""

    b.on("say", note)
    subject = subjects.between_regions("b", "a", "say", "large")
    await bus.publish(subject, seal(KEY, subject, b"x" * LARGEST, 1000.0))
    for number in range(BURST + 50):
        subject = subjects.between_regions("b", "a", "say", str(number))
        await bus.publish(subject, seal(KEY, subject, b"small", 1000.0))
    for _ in range(5000):
        await asyncio.sleep(0)
    assert 0 < len(heard) <= BURST + 1
    assert set(heard) == {b"small"}


async def test_an_answer_is_waited_for_as_long_as_somebody_is_at_it(
    bus: MemoryBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_module, "SIGN_S", 0.5)
    monkeypatch.setattr(wire_module, "SIGN_EVERY_S", 0.05)
    a, b = await made(bus, "a", "b"), await made(bus, "b", "a")
    ready = asyncio.Event()

    async def slow(_: str, data: bytes) -> bytes:
        await ready.wait()
        return data

    b.on("say", slow)
    asking = asyncio.create_task(a.ask("b", "say", b"hello", 60.0))
    heard = 0
    while heard < 15:  # longer than without a sign
        await asyncio.sleep(0.05)
        heard = a.heard_of("b")
        assert not asking.done()
    ready.set()
    assert await asking == b"hello"
    with pytest.raises(RequestTimeout):  # nobody is at it: what nobody handles is not answered
        async with asyncio.timeout(30):
            await a.ask("b", "unknown", b"hello", 60.0)


async def test_a_region_is_not_called_silent_because_the_asker_stood_still(
    bus: MemoryBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its timer goes off first, and what was said meanwhile is read after it."""
    monkeypatch.setattr(wire_module, "SIGN_S", 0.2)
    a = await made(bus, "a", "b")
    wait, said = asyncio.wait, list[float]()

    async def stands_still(waited: set[asyncio.Future[bytes]], timeout: float) -> object:
        said.append(timeout)
        if len(said) == 1:
            time.sleep(2 * timeout)  # noqa: ASYNC251 - the whole process stands still, its loop too
            (answer,) = waited
            asyncio.get_running_loop().call_later(0.05, answer.set_result, b"it was said")
            return None
        return await wait(waited, timeout=timeout)

    monkeypatch.setattr(wire_module.asyncio, "wait", stands_still)
    assert await a.ask("b", "say", b"hello", 60.0) == b"it was said"
    assert len(said) == 2
