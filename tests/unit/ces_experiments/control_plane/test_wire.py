"""What a simulated agent makes of the bytes that NATS sends, and sends itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.bus.codec import pack
from ces_common.bus.port import BusError, BusUnavailable, NoResponder
from ces_common.natsauth import Credentials, new_user_key
from ces_experiments.control_plane.wire import Wire

INFO = b'INFO {"nonce": "n"}\r\n'
LONG = b"so long that it travels compressed" * 1000


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = b""

    def write(self, data: Any) -> None:
        self.sent += bytes(data)


def hmsg(subject: str, number: int, headers: dict[str, str], body: bytes, status: str = "") -> bytes:
    lines = [f"NATS/1.0{status}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    block = "\r\n".join(lines)
    return f"HMSG {subject} {number} {len(block)} {len(block) + len(body)}\r\n{block}".encode() + body + b"\r\n"


def connected() -> tuple[Wire, Transport]:
    wire, transport = Wire("a", Credentials("jwt", new_user_key().seed)), Transport()
    wire.connection_made(transport)
    wire.data_received(INFO)
    wire.data_received(b"PONG\r\n")
    return wire, transport


async def test_it_introduces_itself_with_a_proof_and_answers_pings() -> None:
    wire, transport = connected()
    line, inbox, ping, _ = transport.sent.split(b"\r\n")
    options = json.loads(line.removeprefix(b"CONNECT "))
    assert (options["jwt"], options["name"], options["headers"]) == ("jwt", "a", True)
    assert (inbox, ping) == (b"SUB _INBOX.a.* 0", b"PING")
    transport.sent = b""
    wire.data_received(b"PING\r\n")
    assert transport.sent == b"PONG\r\n"


@given(cuts=st.lists(st.integers(0, 700), max_size=6))
def test_messages_are_the_same_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    async def heard() -> list[tuple[str, bytes]]:
        wire, _ = connected()
        found: list[tuple[str, bytes]] = []
        wire.subscribe("d.>", lambda subject, data: found.append((subject, data)))
        wire.ask("hb", b"", 1, lambda answer: found.append(("answer", answer if isinstance(answer, bytes) else b"?")))
        packed, headers = pack(LONG)
        stream = b"MSG d.x 1 7\r\nan\r\nend\r\nPING\r\nMSG d.y 1 reply 0\r\n\r\n" + hmsg("d.z", 1, headers, packed)
        stream += b"+OK\r\nMSG _INBOX.a.1 0 4\r\nyes!\r\n"
        last = 0
        for cut in [*sorted(cuts), len(stream)]:
            wire.data_received(stream[last:cut])
            last = max(last, cut)
        return found

    expected = [("d.x", b"an\r\nend"), ("d.y", b""), ("d.z", LONG), ("answer", b"yes!")]
    assert asyncio.run(heard()) == expected


async def test_a_request_is_answered_once_refused_or_given_up() -> None:
    wire, transport = connected()
    found: list[bytes | BusError] = []
    numbers = [wire.ask("ces.v1.hb.a", b"beat", 2.5, found.append) for _ in range(4)]
    assert b"HPUB ces.v1.hb.a _INBOX.a.1 31 35\r\nNATS/1.0\r\nCes-Patience: 2.5\r\n\r\nbeat\r\n" in transport.sent
    wire.data_received(b"MSG _INBOX.a.1 0 2\r\nok\r\n" * 2)
    wire.data_received(hmsg("_INBOX.a.2", 0, {"Ces-Error": "busy"}, b"later"))
    wire.data_received(hmsg("_INBOX.a.3", 0, {}, b"", status=" 503"))
    assert found[0] == b"ok"
    assert "later" in str(found[1])
    assert isinstance(found[2], NoResponder)
    assert wire.give_up(numbers[3])
    wire.data_received(b"MSG _INBOX.a.4 0 2\r\nok\r\n")
    assert len(found) == 3


@pytest.mark.parametrize("end", ["told", "cut"])
async def test_a_connection_that_the_broker_ends_is_lost(end: str) -> None:
    wire, _ = connected()
    if end == "told":
        wire.data_received(b"-ERR 'Permissions Violation for Publish to \"x\"'\r\n")
    else:
        wire.connection_lost(None)
    with pytest.raises(BusUnavailable, match="a: "):
        await wire.lost
