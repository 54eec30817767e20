"""The connection to NATS, on a client that is none: what is left behind where something fails half-way."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import nats.errors
import pytest

from ces_common.bus.nats_client import BrokerTransport
from ces_common.bus.nats_connection import NatsConnection
from ces_common.bus.nats_refusals import is_no_entry
from ces_common.bus.port import BusError


class HalfClient:
    """Takes subscriptions and then does not answer."""

    is_connected = True

    def __init__(self) -> None:
        self.subscribed = 0
        self.gone = False

    async def subscribe(self, *_: object, **__: object) -> HalfClient:
        self.subscribed += 1
        return self

    async def unsubscribe(self) -> None:
        self.subscribed -= 1
        if self.gone:
            raise nats.errors.ConnectionClosedError

    async def flush(self, timeout: float) -> None:
        raise nats.errors.TimeoutError


@pytest.mark.parametrize("gone", [False, True])
async def test_a_subscription_that_the_broker_never_confirmed_is_taken_back(
    gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(_: Any) -> None:
        return None

    connection, client = NatsConnection(["nats://nowhere"], name="n"), HalfClient()
    client.gone = gone
    monkeypatch.setattr(connection, "_client", client)
    with pytest.raises(BusError):
        await connection.subscribe("a.b", handler)
    assert client.subscribed == 0
    assert connection._subscriptions == []


class FlushingClient:
    """Its publishing waits, and swallows the cancellation that meets it there, as the library's does."""

    is_connected = True
    max_payload = 1000

    async def publish(self, *_: object, **__: object) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


async def test_a_cancellation_that_meets_the_library_while_flushing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = NatsConnection(["nats://nowhere"], name="n")
    monkeypatch.setattr(connection, "_client", FlushingClient())

    async def loop() -> None:
        while True:
            await connection.publish("a.b", b"")

    publishing = asyncio.create_task(loop())
    await asyncio.sleep(0)
    publishing.cancel()
    done, _ = await asyncio.wait({publishing}, timeout=60)
    assert done == {publishing}
    assert publishing.cancelled()


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("nats: 'Authorization Violation'", True),
        ("nats: 'User Authentication Revoked'", True),
        ("nats: 'User Authentication Expired'", True),
        ("nats: 'Authentication Timeout'", False),
    ],
)
def test_a_broker_that_had_no_time_refuses_nobody(said: str, refused: bool) -> None:
    assert is_no_entry(Exception(said)) is refused


def test_a_broker_has_all_of_a_beginning_before_it_can_refuse_and_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written to a connection that was closed fails, and the refusal is never read."""
    transport, sent = BrokerTransport(None, "nowhere"), list[bytes]()
    monkeypatch.setattr(transport, "_io_writer", SimpleNamespace(write=sent.append))
    for part in (b"CONNECT {}\r\n", b"PING\r\n", b"PONG\r\n"):
        transport.write(part)
    assert sent == [b"CONNECT {}\r\nPING\r\n", b"PONG\r\n"]
