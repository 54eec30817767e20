"""What the bus promises, checked on both of its implementations: in memory and on a real nats-server."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ces_common import subjects
from ces_common.bus import (
    DEAD_DELIVERIES,
    DEAD_REASON,
    DEAD_SUBJECT,
    Bus,
    BusError,
    BusUnavailable,
    Delivery,
    MemoryBroker,
    MemoryBus,
    Message,
    NatsBus,
    NoResponder,
    PayloadTooLarge,
    Reject,
    RemoteError,
    RequestTimeout,
    Retry,
)
from ces_common.natsserver import NatsServer, plain_config

SOON = 10.0
Client = Callable[[], Awaitable[Bus]]
JOBS = [subjects.events("job")]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats", plain_config(tmp_path / "nats" / "store")) as running:
        yield running


@pytest.fixture(params=["memory", "nats"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Makes connected clients of one broker."""
    made: list[Bus] = []
    if request.param == "memory":
        broker = MemoryBroker()

        def new() -> Bus:
            return MemoryBus(broker)
    else:
        url = request.getfixturevalue("server").url

        def new() -> Bus:
            return NatsBus(url, name="test")

    async def make() -> Bus:
        bus = new()
        made.append(bus)
        await bus.connect(deadline_s=SOON)
        await bus.provision()
        return bus

    yield make
    for bus in made:
        await bus.close()


class Seen:
    """Collects what handlers get, and lets a test wait for it."""

    def __init__(self) -> None:
        self.all: list[Delivery] = []
        self._queue: asyncio.Queue[Delivery] = asyncio.Queue()

    async def __call__(self, delivery: Delivery) -> None:
        self.all.append(delivery)
        self._queue.put_nowait(delivery)

    async def next(self) -> Delivery:
        return await asyncio.wait_for(self._queue.get(), SOON)


async def put_job(bus: Bus, number: int, data: bytes = b"x") -> bool:
    return await bus.publish_fact(subjects.event("job", "submitted", f"j{number}"), data, message_id=f"m{number}")


async def test_a_fact_arrives_with_everything_it_was_sent_with(client: Client) -> None:
    bus, seen = await client(), Seen()
    await bus.consume("svc", JOBS, seen)
    subject = subjects.event("job", "submitted", "j1")
    await bus.publish_fact(subject, b"payload", message_id="m1", headers={"traceparent": "00-ab"})
    delivery = await seen.next()
    assert (delivery.subject, delivery.data, delivery.message_id, delivery.deliveries) == (subject, b"payload", "m1", 1)
    assert delivery.headers["traceparent"] == "00-ab"


async def test_a_fact_with_a_known_id_is_stored_once(client: Client) -> None:
    bus, seen = await client(), Seen()
    await bus.consume("svc", JOBS, seen)
    assert await put_job(bus, 1) is True
    assert await put_job(bus, 1) is False
    assert await put_job(bus, 2) is True
    assert [(await seen.next()).message_id, (await seen.next()).message_id] == ["m1", "m2"]


async def test_facts_arrive_in_order_and_only_those_asked_for(client: Client) -> None:
    bus, seen = await client(), Seen()
    await bus.publish_fact(subjects.event("plan", "proposed", "p"), b"", message_id="p")
    for number in range(50):
        await put_job(bus, number)
    await bus.consume("svc", JOBS, seen, batch=7)
    assert [(await seen.next()).message_id for _ in range(50)] == [f"m{n}" for n in range(50)]


async def test_a_failed_handler_gets_the_fact_again(client: Client) -> None:
    bus, seen = await client(), Seen()

    async def fails_once(delivery: Delivery) -> None:
        await seen(delivery)
        if delivery.deliveries == 1:
            raise RuntimeError("not yet")

    await bus.consume("svc", JOBS, fails_once)
    await put_job(bus, 1)
    assert [(await seen.next()).deliveries, (await seen.next()).deliveries] == [1, 2]


async def test_retry_waits_as_long_as_asked(client: Client) -> None:
    bus, seen = await client(), Seen()
    times: list[float] = []

    async def later(delivery: Delivery) -> None:
        times.append(asyncio.get_running_loop().time())
        await seen(delivery)
        if delivery.deliveries == 1:
            raise Retry(0.7)

    await bus.consume("svc", JOBS, later)
    await put_job(bus, 1)
    await seen.next()
    await seen.next()
    assert 0.65 <= times[1] - times[0] < 5


async def test_a_fact_past_its_last_delivery_becomes_a_dead_letter(client: Client) -> None:
    bus, seen, dead = await client(), Seen(), Seen()

    async def never(delivery: Delivery) -> None:
        await seen(delivery)
        raise RuntimeError("no way")

    await bus.consume("svc", JOBS, never, max_deliver=2)
    await put_job(bus, 1, b"body")
    await bus.consume("operator", [subjects.ALL_DEAD], dead)
    letter = await dead.next()
    assert [each.deliveries for each in seen.all] == [1, 2]
    assert letter.subject == subjects.dead_letter("svc")
    assert letter.data == b"body"
    assert letter.headers[DEAD_SUBJECT] == subjects.event("job", "submitted", "j1")
    assert letter.headers[DEAD_REASON] == "RuntimeError: no way"
    assert letter.headers[DEAD_DELIVERIES] == "2"


async def test_a_rejected_fact_is_a_dead_letter_at_once_and_holds_up_nobody(client: Client) -> None:
    bus, seen, dead = await client(), Seen(), Seen()

    async def picky(delivery: Delivery) -> None:
        await seen(delivery)
        if delivery.message_id == "m1":
            raise Reject("not JSON")

    await bus.consume("svc", JOBS, picky)
    await put_job(bus, 1)
    await put_job(bus, 2)
    await bus.consume("operator", [subjects.ALL_DEAD], dead)
    assert (await dead.next()).headers[DEAD_REASON] == "rejected: not JSON"
    await seen.next()
    assert (await seen.next()).message_id == "m2"
    assert len(seen.all) == 2


async def test_a_fact_whose_handler_never_answers_comes_again(client: Client) -> None:
    first, second, seen = await client(), await client(), Seen()
    stuck = asyncio.Event()

    async def hang(delivery: Delivery) -> None:
        stuck.set()
        await asyncio.Event().wait()

    await first.consume("svc", JOBS, hang, ack_wait=0.5)
    await put_job(first, 1)
    await asyncio.wait_for(stuck.wait(), SOON)
    await second.consume("svc", JOBS, seen, ack_wait=0.5)
    assert (await seen.next()).deliveries == 2


async def test_clients_with_one_durable_share_the_work(client: Client) -> None:
    first, second, a, b = await client(), await client(), Seen(), Seen()
    both = asyncio.Barrier(2)

    def handler(seen: Seen) -> Callable[[Delivery], Awaitable[None]]:
        async def handle(delivery: Delivery) -> None:
            await seen(delivery)
            await asyncio.wait_for(both.wait(), SOON)  # passes only while the other client has one too

        return handle

    await first.consume("svc", JOBS, handler(a), batch=1)
    await second.consume("svc", JOBS, handler(b), batch=1)
    for number in range(6):
        await put_job(first, number)
    got = [(await seen.next()).message_id for seen in (a, b) for _ in range(3)]
    assert sorted(got) == [f"m{n}" for n in range(6)]


async def test_two_durables_each_get_everything(client: Client) -> None:
    bus, a, b = await client(), Seen(), Seen()
    await bus.consume("one", JOBS, a)
    await bus.consume("two", JOBS, b)
    await put_job(bus, 1)
    assert (await a.next()).message_id == (await b.next()).message_id == "m1"


async def test_a_durable_goes_on_where_the_last_client_stopped(client: Client) -> None:
    first, seen = await client(), Seen()
    await first.consume("svc", JOBS, seen)
    await put_job(first, 1)
    await seen.next()
    await first.close()
    second, rest = await client(), Seen()
    await put_job(second, 2)
    await second.consume("svc", JOBS, rest)
    assert (await rest.next()).message_id == "m2"


async def test_closing_hands_back_what_was_not_handled(client: Client) -> None:
    first, seen = await client(), Seen()
    busy = asyncio.Event()

    async def hang(delivery: Delivery) -> None:
        busy.set()
        await asyncio.Event().wait()

    await first.consume("svc", JOBS, hang)
    for number in range(3):
        await put_job(first, number)
    await asyncio.wait_for(busy.wait(), SOON)
    await first.close()
    second = await client()
    await second.consume("svc", JOBS, seen)
    assert sorted([(await seen.next()).message_id for _ in range(3)]) == ["m0", "m1", "m2"]


async def test_a_changed_consumer_configuration_takes_effect(client: Client) -> None:
    bus, seen = await client(), Seen()
    subscription = await bus.consume("svc", JOBS, seen)
    await put_job(bus, 1)
    await seen.next()
    await subscription.close()
    await bus.consume("svc", [*JOBS, subjects.events("plan", "proposed")], seen, ack_wait=5.0)
    await bus.publish_fact(subjects.event("plan", "proposed", "p"), b"", message_id="p")
    assert (await seen.next()).message_id == "p"


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
    await bus.subscribe(subjects.ALL_HEARTBEATS, lambda message: _set(again))
    await bus.publish(subjects.heartbeat("n1"), b"4")
    await asyncio.wait_for(again.wait(), SOON)
    assert got.empty()


async def _set(event: asyncio.Event) -> None:
    event.set()


async def test_a_request_to_nobody_fails_at_once(client: Client) -> None:
    bus = await client()
    async with asyncio.timeout(10.0):
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


async def test_wanted_state_is_kept_read_and_deleted(client: Client) -> None:
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


async def test_provisioning_twice_changes_nothing(client: Client) -> None:
    bus, seen = await client(), Seen()
    await put_job(bus, 1)
    await bus.provision()
    await bus.consume("svc", JOBS, seen)
    assert (await seen.next()).message_id == "m1"


async def test_a_closed_client_says_that_it_is_not_connected(client: Client) -> None:
    bus = await client()
    assert bus.connected
    await bus.close()
    assert not bus.connected
    with pytest.raises(BusUnavailable):
        await bus.publish(subjects.heartbeat("n1"), b"")


# What only a real server can lose.


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
    await bus.kv_put("n1.compute", b"wanted")
    bus.on_reconnect(lambda: _set(back))
    await put_job(bus, 1)
    await seen.next()

    await asyncio.to_thread(server.stop)
    await wait_until(lambda: not bus.connected)
    with pytest.raises(BusUnavailable):
        await bus.publish(subjects.heartbeat("n1"), b"lost")
    await asyncio.to_thread(server.start)
    await asyncio.wait_for(back.wait(), SOON)

    assert await bus.request(subjects.rpc("manager", "echo"), b"hello") == b"hello"
    await bus.publish(subjects.heartbeat("n1"), b"alive")
    assert (await asyncio.wait_for(heard.get(), SOON)).data == b"alive"
    assert await bus.kv_get("n1.compute") == b"wanted"
    await put_job(bus, 2)
    assert (await seen.next()).message_id == "m2"


async def test_everything_goes_on_after_the_data_directory_was_wiped(
    bus: NatsBus, server: NatsServer, tmp_path: Path
) -> None:
    seen = Seen()
    await bus.consume("svc", JOBS, seen)
    await put_job(bus, 1)
    await seen.next()
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

    seen = Seen()
    await bus.consume("svc", JOBS, seen)
    await put_job(bus, 1)
    await seen.next()
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
    bus.on_reconnect(lambda: _set(back))
    transport = bus._link.client._transport
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


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


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
