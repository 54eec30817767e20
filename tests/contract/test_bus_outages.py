"""What only a real server can lose, and that the bus goes on afterwards."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from bus_clients import JOBS, SOON, Seen, put_job, set_event
from nats_process import NatsServer, plain_config
from waiting import until

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.port import BusError, BusUnavailable, Message


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[NatsBus]:
    one = NatsBus(server.url, name="test")
    await one.connect(deadline_s=SOON)
    await one.provision()
    yield one
    await one.close()


async def eventually(attempt: Callable[[], Awaitable[object]]) -> None:
    """Until it no longer fails for want of the broker."""
    async with asyncio.timeout(3 * SOON):
        while True:
            try:
                await attempt()
                return
            except BusError:
                await asyncio.sleep(0.05)


async def test_everything_goes_on_after_the_server_restarts(bus: NatsBus, server: NatsServer) -> None:
    seen, heard, back = Seen(), asyncio.Queue[Message](), asyncio.Event()

    async def echo(message: Message) -> bytes:
        return message.data

    await bus.consume("svc", JOBS, seen)
    await bus.subscribe(subjects.ALL_HEARTBEATS, heard.put)
    await bus.serve(subjects.rpc("manager", "echo"), echo)
    await bus.kv_put("n1.compute", b"desired")
    bus.on_reconnect(lambda: set_event(back))
    await put_job(bus, 1)
    await seen.next()

    await asyncio.to_thread(server.stop)
    await until(lambda: not bus.connected)
    with pytest.raises(BusUnavailable):
        await bus.publish(subjects.heartbeat("n1"), b"lost")
    await asyncio.to_thread(server.start)
    await asyncio.wait_for(back.wait(), SOON)

    assert await bus.request(subjects.rpc("manager", "echo"), b"hello") == b"hello"
    await bus.publish(subjects.heartbeat("n1"), b"alive")
    assert (await asyncio.wait_for(heard.get(), SOON)).data == b"alive"
    assert await bus.kv_get("n1.compute") == b"desired"
    await put_job(bus, 2)
    assert (await seen.next()).message_id == "m2"


async def consuming(bus: NatsBus) -> Seen:
    """A consumer that has had its first message."""
    seen = Seen()
    await bus.consume("svc", JOBS, seen)
    await put_job(bus, 1)
    await seen.next()
    return seen


async def test_everything_goes_on_after_the_data_directory_was_wiped(
    bus: NatsBus, server: NatsServer, tmp_path: Path
) -> None:
    seen = await consuming(bus)
    await asyncio.to_thread(server.kill)
    shutil.rmtree(tmp_path / "nats" / "store")
    await asyncio.to_thread(server.start)
    await eventually(lambda: put_job(bus, 2))
    assert (await seen.next()).message_id == "m2"
    await eventually(lambda: bus.kv_put("n1.compute", b"again"))
    assert await bus.kv_get("n1.compute") == b"again"


@pytest.mark.parametrize("what", ["consumer", "stream"])
async def test_a_consumer_comes_back_after_it_or_its_stream_was_deleted(
    bus: NatsBus, server: NatsServer, what: str
) -> None:
    import nats

    seen = await consuming(bus)
    admin = await nats.connect(server.url)
    try:
        if what == "consumer":
            await admin.jetstream().delete_consumer(subjects.EVENT_STREAM, "svc")
        else:
            await admin.jetstream().delete_stream(subjects.EVENT_STREAM)
    finally:
        await admin.close()
    await eventually(lambda: put_job(bus, 2))
    while (await seen.next()).message_id != "m2":
        pass  # a consumer made anew starts from the beginning: facts may repeat


async def test_subscriptions_survive_a_connection_that_the_server_closes(bus: NatsBus, server: NatsServer) -> None:
    """The client library gives up for good when a server reports an error; the bus starts over."""
    heard, seen, back = asyncio.Queue[Message](), Seen(), asyncio.Event()
    await bus.subscribe(subjects.ALL_HEARTBEATS, heard.put)
    await bus.consume("svc", JOBS, seen)
    bus.on_reconnect(lambda: set_event(back))
    transport = bus._connection.client._transport
    assert transport is not None
    transport.write(b"NONSENSE\r\n")
    await asyncio.wait_for(back.wait(), SOON)
    await bus.publish(subjects.heartbeat("n1"), b"alive")
    assert (await asyncio.wait_for(heard.get(), SOON)).data == b"alive"
    await put_job(bus, 1)
    assert (await seen.next()).message_id == "m1"


async def test_connecting_waits_for_a_server_that_comes_later(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats", plain_config(tmp_path / "nats" / "store"))
    server.start()
    url = server.url
    server.stop()
    late = NatsBus(url, name="late")
    with pytest.raises(BusUnavailable, match="no message broker"):
        await late.connect(deadline_s=0.5)
    connecting = asyncio.create_task(late.connect())
    await asyncio.to_thread(server.start)
    try:
        await asyncio.wait_for(connecting, SOON)
        assert late.connected
        await late.close()
    finally:
        with suppress(asyncio.CancelledError):
            connecting.cancel()
        server.stop()


async def test_a_malformed_address_is_an_error_and_not_a_broker_to_wait_for() -> None:
    with pytest.raises(BusError, match="cannot connect"):
        await NatsBus("nats://:not-a-port", name="test").connect()


async def test_a_server_that_hangs_up_is_one_that_is_not_there_yet() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"version": "2.10.0", "max_payload": 1048576, "headers": true}\r\n')
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        bus = NatsBus(f"nats://127.0.0.1:{port}", name="test")
        with pytest.raises(BusUnavailable):
            await bus.connect(deadline_s=0.5)
        assert not bus.connected


async def test_consuming_before_anything_is_provisioned_starts_once_it_is(server: NatsServer) -> None:
    """Services start in any order. Without authentication the consumer provisions for itself."""
    bus, seen = NatsBus(server.url, name="early"), Seen()
    await bus.connect(deadline_s=SOON)
    try:
        await bus.consume("svc", JOBS, seen)
        await put_job(bus, 1)
        assert (await seen.next()).message_id == "m1"
    finally:
        await bus.close()
