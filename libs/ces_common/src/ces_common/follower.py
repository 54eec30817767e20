"""A process that follows the manager's state: what the scheduler and the controllers have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from ces_common.bus.port import Bus
from ces_common.connection import bus_from
from ces_common.health import health_app, serve_http
from ces_common.service import run_loops
from ces_common.settings import ServiceSettings
from ces_common.setup_files import metrics_token
from ces_common.state_reader import StateReader
from ces_common.trace_shipping import SPANS, flush_spans, ship_spans


class Follower(Protocol):
    reader: StateReader

    def missing(self) -> str | None:
        """What keeps it from working; None when ready."""

    async def run(self) -> None:
        """Work until cancelled, on a connected bus."""


async def follow(
    name: str,
    settings: ServiceSettings,
    stop: asyncio.Event,
    make: Callable[[Bus], Follower],
    *,
    remark: str | None = None,
) -> None:
    """Run a follower until told to stop, its health served beside it, with a ``remark`` for whoever asks."""
    token = metrics_token(settings)
    bus = bus_from(settings, name)
    follower = make(bus)

    async def work() -> None:
        await bus.connect()
        await follower.run()

    app = health_app(name, follower.missing, token, remark)
    async with serve_http(app, settings.http_host, settings.http_port):
        try:
            await run_loops(stop, work(), ship_spans(bus, SPANS, name))
        finally:
            await follower.reader.close()
            await flush_spans(bus, SPANS, name)
            await bus.close()
