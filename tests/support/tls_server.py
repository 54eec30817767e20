"""Servers that a client may meet: with a certificate of the right authority, of another, and with none at all."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from starlette.types import ASGIApp

from ces_common.health import serve_http
from ces_common.tls.certificates import Authority, init_authority, renew

HERE = ("127.0.0.1", "localhost")
DAY = timedelta(days=1)


def certified(folder: Path, names: tuple[str, ...] = HERE) -> tuple[Authority, Path]:
    """An authority of its own, and the file of a server that it certifies."""
    authority, file = init_authority(folder), folder / "server.pem"
    renew(file, authority, names, DAY, datetime.now(UTC))
    return authority, file


def serving(file: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context


@asynccontextmanager
async def https(app: ASGIApp, file: Path) -> AsyncIterator[str]:
    """The URL of an app."""
    async with serve_http(app, "127.0.0.1", 0, serving(file)) as port:
        yield f"https://127.0.0.1:{port}"


class Listener:
    """Takes every connection, says ``greeting``, and keeps what it hears."""

    def __init__(self, greeting: bytes) -> None:
        self._greeting = greeting
        self.heard: list[bytes] = []
        self.met = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._greeting)
        while data := await reader.read(65536):
            self.heard.append(data)
            self.met.set()
        writer.close()


@asynccontextmanager
async def listening(greeting: bytes) -> AsyncIterator[tuple[int, Listener]]:
    """The port of a listener, and what it hears."""
    listener = Listener(greeting)
    server = await asyncio.start_server(listener, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], listener
    finally:
        server.close()
