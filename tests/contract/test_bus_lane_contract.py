"""What the bus promises about requests of which only the newest of each sender counts, in memory and on NATS."""

from __future__ import annotations

import asyncio
import zlib

import pytest
from bus_clients import SOON, Client
from nats_process import NatsServer

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.codec import ENCODING
from ces_common.bus.nats_connection import NatsConnection
from ces_common.bus.port import BusError, Message, RemoteError, RequestTimeout

LARGEST = 1000
ASKED = f"{subjects.PREFIX}.rpc.lane.*"
N1, N2, N3 = (f"{subjects.PREFIX}.rpc.lane.n{i}" for i in (1, 2, 3))


class Held:
    """Answers with what it was asked; the first batch waits until the test lets it go on."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def __call__(self, messages: list[Message]) -> list[bytes | RemoteError]:
        self.batches.append([message.data for message in messages])
        self.begun.set()
        await asyncio.wait_for(self.go_on.wait(), SOON)
        return [RemoteError("bad", "no") if message.data == b"bad" else message.data for message in messages]


async def test_only_the_newest_request_of_each_sender_is_worked_off(client: Client) -> None:
    bus, held = await client(), Held()
    await bus.serve_latest(ASKED, held, largest=LARGEST, queue="manager")
    first = asyncio.create_task(bus.request(N1, b"first"))
    await asyncio.wait_for(held.begun.wait(), SOON)
    older = asyncio.create_task(bus.request(N1, b"older", timeout_s=SOON))
    assert not (await asyncio.wait({older}, timeout=0.05))[0]
    others = [asyncio.create_task(bus.request(N1, b"newer")), asyncio.create_task(bus.request(N2, b"bad"))]
    assert not (await asyncio.wait(others, timeout=0.05))[0]
    held.go_on.set()
    assert await first == b"first"
    assert await others[0] == b"newer"
    with pytest.raises(RemoteError, match="bad: no"):
        await others[1]
    assert sorted(data for batch in held.batches for data in batch) == [b"bad", b"first", b"newer"]
    older.cancel()
    await asyncio.wait({older})


async def test_a_request_that_its_sender_has_given_up_is_not_worked_off(client: Client) -> None:
    bus, held = await client(), Held()
    await bus.serve_latest(ASKED, held, largest=LARGEST)
    first = asyncio.create_task(bus.request(N1, b"first"))
    await asyncio.wait_for(held.begun.wait(), SOON)
    with pytest.raises(RequestTimeout):
        await bus.request(N2, b"impatient", timeout_s=0.1)
    patient = asyncio.create_task(bus.request(N3, b"patient"))
    assert not (await asyncio.wait({patient}, timeout=0.05))[0]
    held.go_on.set()
    assert [await first, await patient] == [b"first", b"patient"]
    assert b"impatient" not in [data for batch in held.batches for data in batch]


async def test_what_fails_reaches_all_of_its_batch_and_no_other(client: Client) -> None:
    bus = await client()
    batches = 0

    async def fail_once(messages: list[Message]) -> list[bytes | RemoteError]:
        nonlocal batches
        batches += 1
        if batches == 1:
            raise KeyError("oops")
        return [b"well"] * len(messages)

    await bus.serve_latest(ASKED, fail_once, largest=LARGEST)
    with pytest.raises(RemoteError, match="KeyError"):
        await bus.request(N1)
    assert await bus.request(N1) == b"well"


async def test_a_request_that_is_too_large_is_refused(client: Client) -> None:
    bus, held = await client(), Held()
    held.go_on.set()
    await bus.serve_latest(ASKED, held, largest=LARGEST)
    with pytest.raises(RemoteError, match="too-large"):
        await bus.request(N1, b"x" * (LARGEST + 1))
    assert await bus.request(N1, b"x" * LARGEST) == b"x" * LARGEST


async def test_one_that_expands_beyond_what_is_taken_is_refused_and_costs_the_others_nothing(
    server: NatsServer,
) -> None:
    bus, hostile, held = NatsBus(server.url, name="manager"), NatsConnection([server.url], name="hostile"), Held()
    held.go_on.set()
    await bus.connect(deadline_s=SOON)
    await hostile.connect(SOON)
    await bus.serve_latest(ASKED, held, largest=128 * 1024)
    bomb = zlib.compress(b" " * 64 * 1024 * 1024)
    assert len(bomb) < 128 * 1024
    bad = asyncio.create_task(hostile.request(N1, bomb, {ENCODING: "zlib"}, SOON))
    good = [bus.request(N2, b"good"), bus.request(N3, b'{"node": "n3"}' * 8000)]
    assert [len(answer) for answer in await asyncio.gather(*good)] == [4, 14 * 8000]
    refused = await bad
    assert (refused.headers or {}).get("Ces-Error") == "malformed"
    assert sorted(len(data) for batch in held.batches for data in batch) == [4, 14 * 8000]
    await hostile.close()
    await bus.close()


async def test_an_answer_that_expands_beyond_what_was_expected_is_refused(client: Client) -> None:
    bus, other = await client(), await client()

    async def endless(message: Message) -> bytes:
        return b" " * 10**6

    await other.serve(subjects.agent_rpc("n1", "logs"), endless)
    with pytest.raises(BusError, match=r"beyond 1000 bytes|more than the 1000"):
        await bus.request(subjects.agent_rpc("n1", "logs"), largest=1000)
