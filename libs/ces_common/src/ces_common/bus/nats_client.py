"""A NATS client that no malformed message can stop, nor whoever answers in the broker's place.

The library reads messages one after the other in one task. A header or reply subject that it cannot parse ends that
task or the connection, and whoever may publish at all could so make a service deaf. Here such a message is skipped.

It also begins TLS on a connection that is open already, and waits for ever to close one on which that did not succeed.
Here a connection is encrypted from its first byte, or there is none.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from typing import Any, Final
from urllib.parse import ParseResult

import structlog
from nats.aio.client import DEFAULT_BUFFER_SIZE, Client, Server, Srv
from nats.aio.transport import TcpTransport
from nats.errors import ProtocolError
from nats.protocol.parser import AWAITING_CONTROL_LINE, HMSG_RE, MSG_RE, Parser

log = structlog.get_logger(__name__)
MAX_RECONNECT_WAIT_S: Final = 5.0
SHUTDOWN_S: Final = 2.0  # that the end of an encrypted connection may take
LINE_END: Final = b"\r\n"
MAX_LINE: Final = 1 << 16  # bytes of a message's first line; the server's own limit is far below it


class TolerantParser(Parser):
    """Skips messages whose first line is not as the library expects it."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._to_skip = 0

    def reset(self) -> None:
        super().reset()
        self._to_skip = 0

    async def parse(self, data: bytes = b"") -> None:
        """Raises ProtocolError where what came is no message at all."""
        self.buf.extend(data)
        while True:
            skipped = min(self._to_skip, len(self.buf))
            del self.buf[:skipped]
            self._to_skip -= skipped
            if self._to_skip:
                return
            try:
                await super().parse()
            except ProtocolError:
                if not self._skip_message():
                    raise
            else:
                if not self._skip_message():
                    return

    def _skip_message(self) -> bool:
        """Whether a message comes next whose first line cannot be understood; then it is to be skipped."""
        if self.state != AWAITING_CONTROL_LINE or not self.buf.startswith((b"MSG ", b"HMSG ")):
            return False
        line, end, _ = bytes(self.buf[:MAX_LINE]).partition(LINE_END)
        if not end or MSG_RE.match(self.buf) or HMSG_RE.match(self.buf):
            return False
        size = line.rpartition(b" ")[2]
        if not size.isdigit():
            return False
        log.debug("malformed message skipped", line=line)
        self._to_skip = len(line) + int(size) + 2 * len(LINE_END)
        return True


class BrokerTransport(TcpTransport):
    """``tls``: by what the server is checked, None: in the clear; ``server``: whom its certificate must be for.

    The library writes CONNECT and then PING. A server that refuses the first may have closed the connection before the
    second, which then fails as a broken pipe, and what the server said is lost: a refusal looked like a lost broker. So
    the two are written as one."""

    def __init__(self, tls: ssl.SSLContext | None, server: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tls, self._server = tls, server
        self._held = b""

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        """Raises OSError (of which ssl.SSLError is one), TimeoutError."""
        encrypted: dict[str, Any] = {}
        if self._tls is not None:
            encrypted = {"ssl": self._tls, "server_hostname": self._server, "ssl_shutdown_timeout": SHUTDOWN_S}
        async with asyncio.timeout(connect_timeout):
            self._io_reader, self._io_writer = await asyncio.open_connection(
                uri.hostname, uri.port, limit=buffer_size, **encrypted
            )

    def write(self, payload: bytes) -> None:
        assert self._io_writer is not None, "connect first"
        if payload.startswith(b"CONNECT "):
            self._held = payload
            return
        held, self._held = self._held, b""
        self._io_writer.write(held + payload)

    async def readline(self) -> bytes:
        """What a server says while a connection begins: the library would go on after none. Raises OSError."""
        line: bytes = await super().readline()  # type: ignore[no-untyped-call]
        if not line:
            raise ConnectionResetError("the broker closed the connection at once")
        return line

    async def connect_tls(
        self, uri: str | ParseResult, ssl_context: ssl.SSLContext, buffer_size: int, connect_timeout: int
    ) -> None:
        """Nothing where TLS has begun already."""
        if self._tls is None:
            await super().connect_tls(uri, ssl_context, buffer_size, connect_timeout)


class TolerantClient(Client):
    """``tls``: what servers are checked by; None: connections are in the clear."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._ps = TolerantParser(self)
        self._tls = tls

    async def _connect_to_server(self, s: Srv) -> None:
        s.last_attempt = time.monotonic()
        # A server that another one has named by its address alone has the other one's name.
        self._transport = BrokerTransport(self._tls, s.tls_name or s.uri.hostname or "")
        await self._transport.connect(s.uri, DEFAULT_BUFFER_SIZE, self.options["connect_timeout"])

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        try:
            await super()._process_msg(sid, subject, reply, data, headers)
        except Exception as error:  # whatever its bytes make the library raise
            log.debug("malformed message skipped", subject=subject, error=type(error).__name__)


def next_server(pool: list[Server], _info: dict[str, Any]) -> tuple[Server | None, float]:
    """Each server in turn, with a growing and jittered wait."""
    server = min(pool, key=lambda each: each.reconnects)
    wait_s = min(MAX_RECONNECT_WAIT_S, 0.1 * 2.0 ** min(server.reconnects, 16))
    return server, wait_s * random.uniform(0.5, 1.0)
