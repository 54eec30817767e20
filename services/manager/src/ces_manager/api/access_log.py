"""Who asked for what, and how it was answered: a line in the log for each request, with nothing of its body, headers or
query."""

from __future__ import annotations

import time

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ces_manager.api.auth import IDENTITY, QUIET

log = structlog.get_logger()
LONGEST_PATH = 200  # characters


class AccessLog:
    """Changes and refusals are told at level info; what was merely read at level debug, since many read every second. A
    stream is told when it begins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in QUIET:
            await self._app(scope, receive, send)
            return
        began = time.monotonic()

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                _tell(scope, message["status"], time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, told)


def _tell(scope: Scope, status: int, took_s: float) -> None:
    identity = scope.get("state", {}).get(IDENTITY)
    level = "debug" if scope["method"] in ("GET", "HEAD") and status < 400 else "info"
    client = scope.get("client")
    getattr(log, level)(
        "request",
        actor=identity.name if identity is not None else None,
        address=client[0] if client else None,
        method=scope["method"],
        path=scope["path"][:LONGEST_PATH],
        status=status,
        took_ms=round(took_s * 1000, 1),
    )
