"""A client's way to whichever manager is there."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Sequence

import httpx

DOWN_S = 60.0  # for which all managers may be away
PAUSE_S = 0.1
AWAY = 503


class AnyManager(httpx.AsyncBaseTransport):
    """Asks one manager until it is away, and then the next. A request may be sent again: let it have the same effect.
    ``inner``: what carries it there. ``tls``: what they are checked by."""

    def __init__(
        self,
        urls: Sequence[str],
        inner: httpx.AsyncBaseTransport | None = None,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._urls = [httpx.URL(url) for url in urls]
        limits = httpx.Limits(max_connections=32, keepalive_expiry=2)  # before a manager closes them, after five
        self._inner = inner or httpx.AsyncHTTPTransport(limits=limits, verify=True if tls is None else tls)
        self._which = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.TransportError where no manager has answered for a minute."""
        until = time.monotonic() + DOWN_S
        while True:
            which = self._which
            url = self._urls[which % len(self._urls)]
            request.url = request.url.copy_with(host=url.host, port=url.port)
            try:
                answer = await self._inner.handle_async_request(request)
                if answer.status_code != AWAY or time.monotonic() > until:
                    return answer
                await answer.aclose()
            except httpx.TransportError:
                if time.monotonic() > until:
                    raise
            if self._which == which:  # else another request has found that out
                self._which += 1
            await asyncio.sleep(PAUSE_S)

    async def aclose(self) -> None:
        await self._inner.aclose()
