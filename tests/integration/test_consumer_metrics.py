"""What is told of consumers of a real broker: what waits, what is worked on, what was given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bus_clients import SOON
from nats_process import NatsServer, plain_config
from prometheus_client import REGISTRY
from waiting import until

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.port import Delivery, Reject

JOBS = [subjects.events("job", "submitted")]


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[NatsBus]:
    with NatsServer(tmp_path / "nats", plain_config(tmp_path / "nats" / "store")) as server:
        made = NatsBus(server.url, name="test")
        await made.connect(deadline_s=SOON)
        await made.provision()
        yield made
        await made.close()


def value(name: str, consumer: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"consumer": consumer})


async def test_what_waits_is_told_while_a_message_is_worked_on_and_after(bus: NatsBus) -> None:
    consumer, go_on, handled = "metered", asyncio.Event(), 0

    async def held(delivery: Delivery) -> None:
        nonlocal handled
        await go_on.wait()
        handled += 1
        if delivery.message_id == "m2":
            raise Reject("not this one")

    for number in range(5):
        subject = subjects.event("job", "submitted", f"j{number}")
        await bus.publish_fact(subject, b"body", message_id=f"m{number}")
    await bus.consume(consumer, JOBS, held)
    assert value("ces_dead_letters_total", consumer) == 0, "there from the first, or the first were no increase"
    await until(lambda: (value("ces_consumer_handling_seconds", consumer) or 0) > 0)
    assert value("ces_consumer_pending_messages", consumer) == 5
    go_on.set()
    await until(lambda: handled == 5 and value("ces_consumer_pending_messages", consumer) == 0)
    await until(lambda: value("ces_consumer_handling_seconds", consumer) == 0)
    await until(lambda: value("ces_dead_letters_total", consumer) == 1)
