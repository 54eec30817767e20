"""A hostile client of the broker: it holds a node's credential, sends whatever bytes it likes, and counts what comes
back. It goes on when the broker complains, and comes back when it is thrown out."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from ces_common.bus.codec import ERROR
from ces_common.natsauth.credentials import Credentials
from ces_common.natsauth.keys import sign
from ces_common.subjects import inbox_prefix
from ces_experiments.security.mutations import Headers

LIMIT: Final = 16 * 2**20  # bytes of one line or message
SOON_S: Final = 10.0
LOOK_S: Final = 0.2
LOOKS: Final = 25

Asked = Callable[[str], bytes]  # from the subject of a question to the answer


class ThrownOut(OSError):
    """The broker has ended the connection."""


class Rogue:
    """``seen``: what came back, by kind: ``refused`` for want of rights, ``answered``, ``refused by a service``,
    ``thrown out``, and ``too late`` for an answer to what was asked before the last ``mark``. ``asked``: gives the
    answer to a question that a service puts to this node."""

    def __init__(self, url: str, name: str, credentials: Credentials, tls: ssl.SSLContext | None) -> None:
        at = urlsplit(url)
        self._host, self._port, self._tls = at.hostname or "", at.port or 0, tls
        self.name, self._credentials = name, credentials
        self.seen: Counter[str] = Counter()
        self.asked: Asked = lambda _: b""
        self._inbox = f"{inbox_prefix(name)}.{secrets.token_hex(4)}"  # each connection hears its own answers alone
        self._numbers = self._marked = 0
        self._waiting: dict[str, asyncio.Future[None]] = {}  # by the reply subject
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._pongs: asyncio.Queue[bool] = asyncio.Queue()

    def mark(self) -> dict[str, int]:
        """What was seen so far. From here on only answers to what is asked from here on count as answers: a service
        that is at work on a thousand odd questions may answer the last of them seconds later."""
        self._marked = self._numbers
        return dict(self.seen)

    async def open(self) -> None:
        """Raises OSError, TimeoutError."""
        async with asyncio.timeout(SOON_S):
            reader, self._writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=LIMIT)
            info = json.loads((await reader.readuntil(b"\r\n"))[5:])
            self._pongs = asyncio.Queue()
            self._reading = asyncio.create_task(self._read(reader))
            proof = sign(self._credentials.seed, info["nonce"].encode())
            options: dict[str, Any] = {
                "jwt": self._credentials.jwt,
                "sig": base64.b64encode(proof).decode(),
                "name": self.name,
                "lang": "none",
                "version": "0",
                "protocol": 1,
                "headers": True,
                "no_responders": True,
                "verbose": False,
                "pedantic": False,
            }
            rpc = f"ces.v1.rpc.agent.{self.name}.>"
            await self.send(f"CONNECT {json.dumps(options)}\r\nSUB {self._inbox}.> 0\r\nSUB {rpc} 1\r\n".encode())
            await self.settled()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._writer.wait_closed()

    async def back(self) -> None:
        """A new connection in the place of this one. Raises OSError, TimeoutError."""
        await self.close()
        await self.open()

    async def send(self, data: bytes) -> None:
        """Any bytes; waits where the broker reads no faster. Raises OSError."""
        if self._writer is None or self._writer.is_closing() or self._reading is None or self._reading.done():
            raise ThrownOut("the connection has ended")
        self._writer.write(data)
        async with asyncio.timeout(SOON_S):
            await self._writer.drain()

    async def settled(self) -> None:
        """Wait until the broker has worked off what was sent. Raises OSError, TimeoutError."""
        await self.send(b"PING\r\n")
        async with asyncio.timeout(SOON_S):
            if not await self._pongs.get():
                raise ThrownOut("the broker has ended the connection")

    async def quiet(self) -> None:
        """Wait until nothing more comes back: what services answer takes a while, and some of it longer. Raises
        OSError, TimeoutError."""
        await self.settled()
        for _ in range(LOOKS):
            before = self.seen.total()
            await asyncio.sleep(LOOK_S)
            if self.seen.total() == before:
                return

    async def publish(
        self, subject: str, payload: bytes, headers: Headers | bytes = (), reply: str | None = None
    ) -> None:
        """``reply``: empty for none; None for an inbox of its own. Raises OSError, TimeoutError."""
        self._numbers += 1
        if reply is None:
            reply = f"{self._inbox}.{self._numbers}"
        await self.send(message(subject, payload, headers, reply))

    async def ask(self, subject: str, payload: bytes, patience_s: float) -> None:
        """Publish, and wait until an answer was seen, or no longer. Raises OSError, TimeoutError."""
        reply = f"{self._inbox}.{self._numbers + 1}"
        self._waiting[reply] = answered = asyncio.get_running_loop().create_future()
        await self.publish(subject, payload)
        await asyncio.wait([answered], timeout=patience_s)
        self._waiting.pop(reply, None)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                line = await reader.readuntil(b"\r\n")
                verb, *words = line.split()
                if verb == b"PING":
                    await self.send(b"PONG\r\n")
                elif verb == b"PONG":
                    self._pongs.put_nowait(True)
                elif verb == b"-ERR":
                    self.seen["refused" if b"Permissions" in line else "complained of"] += 1
                elif verb in (b"MSG", b"HMSG"):
                    body = await reader.readexactly(int(words[-1]) + 2)
                    head = body[: int(words[-2])] if verb == b"HMSG" else b""
                    await self._heard(words, head, words[2 : -2 if verb == b"HMSG" else -1])
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            self.seen["thrown out"] += 1
        finally:
            self._pongs.put_nowait(False)

    async def _heard(self, words: list[bytes], head: bytes, reply: list[bytes]) -> None:
        answered = self._waiting.get(words[0].decode())
        if answered is not None and not answered.done():
            answered.set_result(None)
        if words[1] == b"1":
            self.seen["asked"] += 1
            if reply:
                await self.send(message(reply[0].decode(), self.asked(words[0].decode())))
        elif self._is_late(words[0].decode()):
            self.seen["too late"] += 1
        elif ERROR.encode() in head:
            self.seen["refused by a service"] += 1
        elif b"NATS/1.0 503" in head:
            self.seen["heard by nobody"] += 1
        else:
            self.seen["answered"] += 1

    def _is_late(self, inbox: str) -> bool:
        number = inbox.removeprefix(f"{self._inbox}.")
        return number.isdecimal() and int(number) <= self._marked


def message(subject: str, payload: bytes, headers: Headers | bytes = (), reply: str = "") -> bytes:
    """A message as it goes over the wire."""
    to = f"{subject} {reply}".strip().encode()
    if not headers:
        return b"PUB %b %d\r\n%b\r\n" % (to, len(payload), payload)
    if not isinstance(headers, bytes):
        headers = b"NATS/1.0\r\n" + b"".join(f"{name}: {value}\r\n".encode() for name, value in headers) + b"\r\n"
    sizes = (len(headers), len(headers) + len(payload))
    return b"HPUB %b %d %d\r\n%b%b\r\n" % (to, *sizes, headers, payload)
