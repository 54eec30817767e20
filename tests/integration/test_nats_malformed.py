"""Bytes that are no message by NATS's own rules, as anybody who may publish can send them: nobody goes deaf."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from nats_process import NatsServer, plain_config

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.port import Message

SUBJECT = subjects.report("a", "status").encode()


def with_headers(to: bytes, headers: bytes, payload: bytes = b"hi") -> bytes:
    return b"HPUB %s %d %d\r\n%s\r\n" % (to, len(headers), len(headers) + len(payload), headers + payload)


def plain(to: bytes, payload: bytes = b"hi") -> bytes:
    return b"PUB %s %d\r\n%s\r\n" % (to, len(payload), payload)


BAD = {
    "headers without an end": with_headers(SUBJECT, b"NATS/1.0", b""),
    "headers that are no text": with_headers(SUBJECT, b"NATS/1.0 \xff\xff\xff\r\n\r\n"),
    "a reply that is no text": plain(SUBJECT + b" _INBOX.a.\xff"),
    "a reply with white space": plain(SUBJECT + b" _INBOX.a\x0bb"),
    "white space and a large payload": plain(SUBJECT + b" _INBOX.a\x0cb", b"x" * 5000),
    "white space and headers": with_headers(SUBJECT + b" a\x0bb", b"NATS/1.0\r\n\r\n"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_what_comes_after_a_malformed_message_is_heard(bad: bytes, tmp_path: Path) -> None:
    with NatsServer(tmp_path, plain_config(tmp_path / "store")) as server:
        bus, heard, lost = NatsBus(server.url, name="manager"), asyncio.Queue[bytes](), []
        await bus.connect(deadline_s=30)

        async def hear(message: Message) -> None:
            heard.put_nowait(message.data)

        async def reconnected() -> None:
            lost.append(True)

        await bus.subscribe(SUBJECT.decode(), hear)
        bus.on_reconnect(reconnected)
        host, port = server.url.removeprefix("nats://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await reader.readline()
        writer.write(b'CONNECT {"verbose":false,"headers":true,"protocol":1}\r\n')
        for number in range(3):
            writer.write(bad + b"PUB %s 1\r\n%d\r\n" % (SUBJECT, number))
        await writer.drain()
        found: list[bytes] = []
        async with asyncio.timeout(60):
            while found[-1:] != [b"2"]:
                found.append(await heard.get())
        assert [each for each in found if each in (b"0", b"1", b"2")] == [b"0", b"1", b"2"]
        assert lost == []
        writer.close()
        await bus.close()
