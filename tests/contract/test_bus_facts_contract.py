"""What the bus promises about facts: they arrive, in order, once, again where they failed, and dead where they must.

Checked on both of its implementations: in memory and on a real nats-server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

from bus_clients import JOBS, SOON, Client, Seen, put_job

from ces_common import subjects
from ces_common.bus.port import DEAD_DELIVERIES, DEAD_REASON, DEAD_SUBJECT, Delivery, Message, Reject, Retry


async def test_a_fact_arrives_with_everything_it_was_sent_with(client: Client) -> None:
    bus, seen = await client(), Seen()
    await bus.consume("svc", JOBS, seen)
    subject = subjects.event("job", "submitted", "j1")
    await bus.publish_fact(subject, b"payload", message_id="m1", headers={"traceparent": "00-ab"})
    delivery = await seen.next()
    assert (delivery.subject, delivery.data, delivery.message_id, delivery.deliveries) == (subject, b"payload", "m1", 1)
    assert delivery.headers["traceparent"] == "00-ab"


async def test_a_fact_is_heard_by_everybody_who_listens_as_a_plain_message(client: Client) -> None:
    bus, heard = await client(), [asyncio.Queue[Message](), asyncio.Queue[Message]()]
    for queue in heard:
        await (await client()).subscribe(*JOBS, queue.put)
    await put_job(bus, 1, b"payload")
    for queue in heard:
        async with asyncio.timeout(SOON):
            message = await queue.get()
        assert (message.subject, message.data) == (subjects.event("job", "submitted", "j1"), b"payload")


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


async def test_who_cannot_work_now_uses_up_no_delivery_and_keeps_the_order(client: Client) -> None:
    bus, seen, dead = await client(), Seen(), Seen()
    times: list[float] = []

    async def later(delivery: Delivery) -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) < 6:
            raise Retry(0.3, "no database")
        await seen(delivery)

    await bus.consume("svc", JOBS, later, max_deliver=2, ack_wait=1.0)
    for number in (1, 2):
        await put_job(bus, number)
    found = [await seen.next(), await seen.next()]
    assert [(each.message_id, each.deliveries) for each in found] == [("m1", 1), ("m2", 1)]
    assert min(b - a for a, b in pairwise(times[:6])) > 0.25
    await bus.consume("operator", [subjects.ALL_DEAD], dead)
    assert dead.all == []


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


async def test_a_fact_with_a_slow_handler_is_left_to_it(client: Client) -> None:
    first, second, slow, seen = await client(), await client(), Seen(), Seen()

    async def handle(delivery: Delivery) -> None:
        await asyncio.sleep(2 * 0.5)
        await slow(delivery)

    await first.consume("svc", JOBS, handle, ack_wait=0.5)
    await put_job(first, 1)
    await second.consume("svc", JOBS, seen, ack_wait=0.5)
    assert (await slow.next()).deliveries == 1
    assert seen.all == []


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


async def test_provisioning_twice_changes_nothing(client: Client) -> None:
    bus, seen = await client(), Seen()
    await put_job(bus, 1)
    await bus.provision()
    await bus.consume("svc", JOBS, seen)
    assert (await seen.next()).message_id == "m1"
