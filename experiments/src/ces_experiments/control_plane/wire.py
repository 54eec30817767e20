"""The little of NATS's client protocol that a simulated agent speaks.

It has no task and no timer of its own, so that thousands of connections fit in one process. Real agents use the whole
client.

https://docs.nats.io/reference/reference-protocols/nats-protocol
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from ces_common.bus.codec import PATIENCE, unpack, unpack_reply
from ces_common.bus.port import LARGEST_ANSWER, BusError, BusUnavailable, NoResponder
from ces_common.natsauth.credentials import Credentials
from ces_common.natsauth.keys import sign
from ces_common.subjects import inbox_prefix

END: Final = b"\r\n"
STATUS: Final = "Status"
NO_RESPONDERS: Final = "503"
CONNECT_S: Final = 30.0
PORT: Final = 4222  # where an address names none

Answer = Callable[[bytes | BusError], None]
Handler = Callable[[str, bytes], None]  # subject, payload


class Wire(asyncio.Protocol):
    """One connection of one identity. ``lost``: fails as soon as the broker ends it or complains."""

    def __init__(self, name: str, credentials: Credentials) -> None:
        loop = asyncio.get_running_loop()
        self._name, self._credentials = name, credentials
        self._inbox = inbox_prefix(name)
        self._transport: asyncio.Transport | None = None
        self._unread = b""
        self._ready: asyncio.Future[None] = loop.create_future()
        self.lost: asyncio.Future[None] = loop.create_future()
        self._handlers: dict[bytes, Handler] = {}  # by the subscription's number
        self._asked: dict[str, Answer] = {}  # by the last part of the subject that is answered to
        self._requests = 0

    @classmethod
    async def open(cls, url: str, name: str, credentials: Credentials, tls: ssl.SSLContext | None = None) -> Wire:
        """``tls``: what the broker is checked by; None: in the clear. Raises BusUnavailable."""
        at = urlsplit(url)
        host, port = at.hostname or "", at.port or PORT
        try:
            async with asyncio.timeout(CONNECT_S):
                loop = asyncio.get_running_loop()
                _, wire = await loop.create_connection(lambda: cls(name, credentials), host, port, ssl=tls)
                await wire._ready
        except (OSError, TimeoutError) as error:
            raise BusUnavailable(f"{url}: {error or type(error).__name__}") from error
        return wire

    def subscribe(self, subject: str, handler: Handler) -> None:
        number = str(len(self._handlers) + 1).encode()
        self._handlers[number] = handler
        self._send(b"SUB %b %b\r\n" % (subject.encode(), number))

    def publish(self, subject: str, data: bytes) -> None:
        self._send(b"PUB %b %d\r\n%b\r\n" % (subject.encode(), len(data), data))

    def ask(self, subject: str, data: bytes, patience_s: float, answered: Answer) -> str:
        """Gives the request's number, with which it can be given up."""
        self._requests += 1
        number = str(self._requests)
        self._asked[number] = answered
        headers = f"NATS/1.0\r\n{PATIENCE}: {patience_s:g}\r\n\r\n".encode()
        addresses = f"{subject} {self._inbox}.{number}".encode()
        size = len(headers)
        self._send(b"HPUB %b %d %d\r\n%b%b\r\n" % (addresses, size, size + len(data), headers, data))
        return number

    def give_up(self, number: str) -> bool:
        """Whether the request still waited for its answer."""
        return self._asked.pop(number, None) is not None

    async def request(self, subject: str, patience_s: float) -> bytes:
        """Raises BusError, TimeoutError."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def answered(found: bytes | BusError) -> None:
            if isinstance(found, bytes):
                answer.set_result(found)
            else:
                answer.set_exception(found)

        number = self.ask(subject, b"", patience_s, answered)
        try:
            async with asyncio.timeout(patience_s):
                return await answer
        finally:
            self.give_up(number)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(f"the connection ended: {error}")

    def data_received(self, data: bytes) -> None:
        data = self._unread + data
        start = 0
        while (end := data.find(END, start)) >= 0:
            line, after = data[start:end], end + len(END)
            if line.startswith((b"MSG ", b"HMSG ")):
                _, subject, number, *_, size = line.split(b" ")
                if len(data) < after + int(size) + len(END):
                    break
                head = int(line.rsplit(b" ", 2)[1]) if line.startswith(b"H") else 0
                body = data[after : after + int(size)]
                after += int(size) + len(END)
                self._message(subject.decode(), number, _headers(body[:head]), body[head:])
            else:
                self._control(line)
            start = after
        self._unread = data[start:]

    def _message(self, subject: str, number: bytes, headers: Mapping[str, str], body: bytes) -> None:
        if number in self._handlers:
            self._handlers[number](subject, unpack(body, headers, LARGEST_ANSWER))
            return
        answered = self._asked.pop(subject.rpartition(".")[2], None)
        if answered is None:  # too late
            return
        if headers.get(STATUS) == NO_RESPONDERS:
            answered(NoResponder("nobody answers"))
            return
        try:
            answered(unpack_reply(body, headers, LARGEST_ANSWER))
        except BusError as error:
            answered(error)

    def _control(self, line: bytes) -> None:
        if line == b"PING":
            self._send(b"PONG\r\n")
        elif line == b"PONG":
            if not self._ready.done():
                self._ready.set_result(None)
        elif line.startswith(b"INFO "):
            if not self._ready.done():
                self._introduce(json.loads(line[5:]))
        elif line.startswith(b"-ERR"):
            self._fail(line.decode())

    def _introduce(self, server: Mapping[str, str]) -> None:
        proof = sign(self._credentials.seed, server["nonce"].encode())
        options = {
            "jwt": self._credentials.jwt, "sig": base64.b64encode(proof).decode(), "name": self._name, "lang": "python",
            "version": "0", "protocol": 1, "headers": True, "no_responders": True, "verbose": False, "pedantic": False,
        }  # fmt: skip
        self._send(b"CONNECT %b\r\nSUB %b.* 0\r\nPING\r\n" % (json.dumps(options).encode(), self._inbox.encode()))

    def _fail(self, why: str) -> None:
        for waiting in (self._ready, self.lost):
            if not waiting.done():
                waiting.set_exception(BusUnavailable(f"{self._name}: {why}"))
                waiting.exception()  # who does not wait for it is not told twice

    def _send(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)


def _headers(block: bytes) -> dict[str, str]:
    if not block:
        return {}
    first, *lines = block.decode().strip().split("\r\n")
    _, _, status = first.partition(" ")
    found = {STATUS: status.partition(" ")[0]} if status else {}
    for line in lines:
        name, _, value = line.partition(":")
        found[name] = value.strip()
    return found
