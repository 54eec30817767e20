"""Who asked for what, and how it was answered: a line in the log for each request, with nothing of its body, headers or
query."""

from __future__ import annotations

import time

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from ces_common.rates import SenderRate
from ces_manager.api.auth import IDENTITY, UI, UNTOLD
from ces_manager.api.failure_counts import network_of
from ces_manager.api.statuses import tell_status

log = structlog.get_logger()
LONGEST_PATH = 200  # characters
STRANGERS_PER_S, STRANGERS_AT_ONCE = 1.0, 100  # lines about one address


class AccessLog:
    """Changes and refusals are told at level info; what was merely read at level debug, since many read every second. A
    stream is told when it begins. Requests of unknown callers are told at a limited rate for each address; ``left_out``
    counts those that were not told since the last one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._strangers, self._left_out = SenderRate(STRANGERS_PER_S, STRANGERS_AT_ONCE), 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNTOLD or scope["path"].startswith(UI):
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        await tell_status(self._app, scope, receive, send, lambda status: self._tell(scope, status, began))

    def _tell(self, scope: Scope, status: int, began: float) -> None:
        now, client = time.monotonic(), scope.get("client")
        identity, address = scope.get("state", {}).get(IDENTITY), client[0] if client else None
        if identity is None and not self._strangers.allows(network_of(address or ""), now):
            self._left_out += 1
            return
        told = {
            "actor": identity.name if identity is not None else None,
            "address": address,
            "method": scope["method"],
            "path": scope["path"][:LONGEST_PATH],
            "status": status,
            "took_ms": round((now - began) * 1000, 1),
        }
        if scope["method"] in ("GET", "HEAD") and status < 400:
            log.debug("request", **told)
            return
        if self._left_out:
            told["left_out"], self._left_out = self._left_out, 0
        log.info("request", **told)
