"""What the bus promises about messages, requests and desired state, which no stream keeps.

Checked on both of its implementations: in memory and on a real nats-server."""

from __future__ import annotations

import asyncio
import os

import pytest
from bus_clients import SOON, Client, put_job, set_event

from ces_common import subjects
from ces_common.bus.port import (
    BusUnavailable,
    Entry,
    Message,
    NoResponder,
    PayloadTooLarge,
    RemoteError,
    RequestTimeout,
    Superseded,
)


async def test_published_messages_reach_every_subscriber_and_one_of_a_queue(client: Client) -> None:
    bus, other = await client(), await client()
    plain: asyncio.Queue[Message] = asyncio.Queue()
    queued: asyncio.Queue[Message] = asyncio.Queue()

    await bus.subscribe(subjects.ALL_HEARTBEATS, plain.put)
    await other.subscribe(subjects.ALL_HEARTBEATS, plain.put)
    await bus.subscribe(subjects.ALL_HEARTBEATS, queued.put, queue="manager")
    await other.subscribe(subjects.ALL_HEARTBEATS, queued.put, queue="manager")
    for number in range(10):
        await bus.publish(subjects.heartbeat("n1"), str(number).encode(), headers={"k": "v"})
    first = [await asyncio.wait_for(plain.get(), SOON) for _ in range(20)]
    assert {(m.subject, m.headers["k"]) for m in first} == {("ces.v1.hb.n1", "v")}
    numbers = [int((await asyncio.wait_for(queued.get(), SOON)).data) for _ in range(10)]
    assert sorted(numbers) == list(range(10))
    assert queued.empty()


async def test_a_failing_message_handler_does_not_end_the_subscription(client: Client) -> None:
    bus = await client()
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def handler(message: Message) -> None:
        if message.data == b"bad":
            raise RuntimeError("bad heartbeat")
        await got.put(message.data)

    subscription = await bus.subscribe(subjects.ALL_HEARTBEATS, handler)
    for data in (b"bad", b"1", b"bad", b"2"):
        await bus.publish(subjects.heartbeat("n1"), data)
    assert [await asyncio.wait_for(got.get(), SOON) for _ in range(2)] == [b"1", b"2"]
    await subscription.close()
    await bus.publish(subjects.heartbeat("n1"), b"3")
    again = asyncio.Event()
    await bus.subscribe(subjects.ALL_HEARTBEATS, lambda message: set_event(again))
    await bus.publish(subjects.heartbeat("n1"), b"4")
    await asyncio.wait_for(again.wait(), SOON)
    assert got.empty()


async def test_a_request_to_nobody_fails_at_once(client: Client) -> None:
    bus = await client()
    async with asyncio.timeout(60):
        with pytest.raises(NoResponder):
            await bus.request(subjects.rpc("manager", "snapshot"), timeout_s=30.0)


async def test_requests_are_answered(client: Client) -> None:
    bus, other = await client(), await client()

    async def upper(message: Message) -> bytes:
        return message.data.upper()

    await other.serve(subjects.rpc("manager", "upper"), upper, queue="manager")
    assert await bus.request(subjects.rpc("manager", "upper"), b"abc") == b"ABC"
    assert await bus.request(subjects.rpc("manager", "upper")) == b""


async def test_a_slow_request_does_not_hold_up_others(client: Client) -> None:
    bus = await client()
    second = asyncio.Event()

    async def handler(message: Message) -> bytes:
        if message.data == b"slow":
            await asyncio.wait_for(second.wait(), SOON)
        else:
            second.set()
        return message.data

    subject = subjects.rpc("manager", "echo")
    await bus.serve(subject, handler)
    assert await asyncio.gather(bus.request(subject, b"slow"), bus.request(subject, b"fast")) == [b"slow", b"fast"]


async def test_a_handlers_error_reaches_the_requester_with_its_code(client: Client) -> None:
    bus = await client()

    async def handler(message: Message) -> bytes:
        if message.data == b"conflict":
            raise RemoteError("conflict", "the snapshot is too old\nby far")
        raise KeyError("oops")

    subject = subjects.rpc("manager", "commit")
    await bus.serve(subject, handler)
    with pytest.raises(RemoteError) as refused:
        await bus.request(subject, b"conflict")
    assert (refused.value.code, refused.value.message) == ("conflict", "the snapshot is too old\nby far")
    with pytest.raises(RemoteError, match="KeyError") as failed:
        await bus.request(subject, b"")
    assert failed.value.code == "internal"


async def test_an_answer_that_does_not_come_is_a_timeout(client: Client) -> None:
    bus = await client()

    async def handler(message: Message) -> bytes:
        await asyncio.Event().wait()
        return b""

    await bus.serve(subjects.rpc("manager", "hang"), handler)
    with pytest.raises(RequestTimeout):
        await bus.request(subjects.rpc("manager", "hang"), timeout_s=0.2)
    # closing must not wait long for the handler that hangs: see the fixture's end


async def test_large_requests_and_replies_travel_compressed(client: Client) -> None:
    bus = await client()
    large = b'{"node": "edge", "cpu": 4000}' * 1_000_000  # 29 MB, more than a message may have

    async def echo(message: Message) -> bytes:
        return message.data * 2

    await bus.serve(subjects.rpc("manager", "snapshot"), echo)
    assert await bus.request(subjects.rpc("manager", "snapshot"), large[:5_000_000]) == large[:5_000_000] * 2


async def test_what_is_too_large_is_named_and_harms_nobody(client: Client) -> None:
    bus = await client()
    huge = os.urandom(8 * 1024 * 1024 + 1)  # nothing that could be compressed
    for sending in (
        bus.publish(subjects.heartbeat("n1"), huge),
        put_job(bus, 1, huge),
        bus.kv_put("n1.compute", huge),
    ):
        with pytest.raises(PayloadTooLarge) as refused:
            await sending
        assert refused.value.limit == 8 * 1024 * 1024
    assert await put_job(bus, 1) is True


async def test_desired_state_is_kept_read_and_deleted(client: Client) -> None:
    bus, other = await client(), await client()
    assert await bus.kv_get("n1.compute") is None
    await bus.kv_put("n1.compute", b"one")
    await bus.kv_put("n1.compute", b"two")
    await bus.kv_put("n2.network", b"")
    assert await other.kv_get("n1.compute") == b"two"
    assert await other.kv_get("n2.network") == b""
    await bus.kv_put("n0.compute", b"zero")
    assert await other.kv_keys("compute") == ["n0.compute", "n1.compute"]
    assert await other.kv_keys("network") == ["n2.network"]
    await other.kv_delete("n1.compute")
    assert await bus.kv_get("n1.compute") is None
    assert await bus.kv_keys("compute") == ["n0.compute"]
    await bus.kv_put("n1.compute", b"three")
    assert await other.kv_get("n1.compute") == b"three"


async def test_of_two_writers_the_one_that_has_not_seen_the_last_change_is_refused(client: Client) -> None:
    bus, other = await client(), await client()
    assert await bus.kv_entry("n1.compute") == Entry(None, 0)
    first = await bus.kv_put("n1.compute", b"one", after=0)
    assert await other.kv_entry("n1.compute") == Entry(b"one", first)
    await other.kv_put("n2.compute", b"another key")
    second = await other.kv_put("n1.compute", b"two", after=first)
    assert second > first
    for seen in (0, first):
        with pytest.raises(Superseded):
            await bus.kv_put("n1.compute", b"late", after=seen)
    assert await bus.kv_entry("n1.compute") == Entry(b"two", second)
    await other.kv_delete("n1.compute")
    with pytest.raises(Superseded):
        await bus.kv_put("n1.compute", b"late", after=second)
    gone = await bus.kv_entry("n1.compute")
    assert gone.value is None
    assert await bus.kv_put("n1.compute", b"three", after=gone.revision) > gone.revision
    await bus.kv_put("n1.compute", b"whatever is there")


async def test_a_document_as_large_as_a_message_may_be_is_told_and_read_whole(client: Client) -> None:
    bus, agent = await client(), await client()
    document = os.urandom(8 * 1024 * 1024 - 1024)
    heard: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def handler(key: str, data: bytes | None) -> None:
        await heard.put(data)

    await agent.kv_subscribe("n1", handler)
    await bus.kv_put("n1.network", document)
    assert await bus.kv_get("n1.network") == document
    assert await asyncio.wait_for(heard.get(), SOON) == document


async def test_a_node_hears_the_changes_of_its_own_keys(client: Client) -> None:
    bus, agent = await client(), await client()
    heard: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue()

    async def handler(key: str, data: bytes | None) -> None:
        await heard.put((key, data))

    await agent.kv_subscribe("n1", handler)
    await bus.kv_put("n2.compute", b"other")
    await bus.kv_put("n1.compute", b"one")
    await bus.kv_put("n1.network", b"two")
    await bus.kv_delete("n1.compute")
    got = [await asyncio.wait_for(heard.get(), SOON) for _ in range(3)]
    assert got == [("n1.compute", b"one"), ("n1.network", b"two"), ("n1.compute", None)]


@pytest.mark.parametrize("key", ["n1", "n1.storage", "*.compute", "n1.compute.x", "a b.compute"])
async def test_no_other_keys_can_be_used(client: Client, key: str) -> None:
    bus = await client()
    with pytest.raises(ValueError, match=r"is no|name"):
        await bus.kv_put(key, b"")


async def test_a_closed_client_says_that_it_is_not_connected(client: Client) -> None:
    bus = await client()
    assert bus.connected
    await bus.close()
    assert not bus.connected
    with pytest.raises(BusUnavailable):
        await bus.publish(subjects.heartbeat("n1"), b"")
