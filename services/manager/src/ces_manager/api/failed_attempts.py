"""Limits how often somebody may fail to join, to renew a credential or to begin a session, and how often they may
apply: nobody needs to be anybody to ask for it."""

from __future__ import annotations

import math
import time
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ces_manager.api.auth import APPLICANTS, POSTED, SESSIONS
from ces_manager.api.failure_counts import BURST, FAILURES_PER_S, FailureCounts, network_of
from ces_manager.api.problems import problem

FAILURES: Final = frozenset({400, 403, 413, 415, 422, 500})
APPLICATIONS_PER_S, APPLICATIONS_AT_ONCE = 0.2, 20  # of one address, whatever becomes of them


class FailedAttempts:
    """Has those wait who failed too often, before anything of what they send is read. What succeeds counts for nothing,
    however often: many agents may share an address. Of those who apply, each counts. Nobody has more under way than may
    fail at once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._failures = FailureCounts(FAILURES_PER_S, BURST)
        self._applications = FailureCounts(APPLICATIONS_PER_S, APPLICATIONS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in POSTED:
            await self._app(scope, receive, send)
            return
        applies = scope["path"] == APPLICANTS
        counts = self._applications if applies else self._failures
        # Whoever guesses codes keeps no agent behind the same address from joining.
        address = f"{scope['path'] == SESSIONS} {network_of(scope['client'][0]) if scope.get('client') else ''}"
        wait_s = counts.wait_s(address, time.monotonic())
        if wait_s > 0:
            text = "too many attempts from this address have failed, or are under way"
            answer = problem(429, text, headers={"Retry-After": str(math.ceil(wait_s))})
            await answer(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and (applies or message["status"] in FAILURES):
                counts.failed(address, time.monotonic())
            await send(message)

        with counts.attempt(address):
            await self._app(scope, receive, counted)
