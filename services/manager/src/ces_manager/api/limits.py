"""Limits of every request: the size of its body, no zero character in path or query, streams open at once."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ces_manager.api.auth import IDENTITY
from ces_manager.api.problems import problem

MAX_BODY = 1024 * 1024
STREAMS_PER_ADDRESS = 128
STREAMS_PER_TOKEN = 512
STREAM_AGAIN_S = 5
STREAMS = re.compile(r"/v1/events|/v1/live|/v1/jobs/[^/]+/(events|logs)")


class BodyLimit:
    """Refuses bodies above 1 MiB, with or without an announced length: reading further raises HTTPException 413.

    The web framework has such a limit too, but answers it in plain text, not with problem details.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MAX_BODY:
                raise HTTPException(413, f"a request may have {MAX_BODY} bytes")
            return message

        await self._app(scope, bounded, send)


class ZeroCharacters:
    """Refuses the zero character in paths and queries: no name has it, and Postgres cannot compare with it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if "\0" in scope["path"]:
                await problem(404, "nothing has a zero character in its name")(scope, receive, send)
                return
            query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            wrong = [name for name, value in query if "\0" in name + value]
            if wrong:
                errors = [{"field": wrong[0].replace("\0", ""), "problem": "must have no zero character"}]
                await problem(422, f"{errors[0]['field']}: {errors[0]['problem']}", errors)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class StreamLimit:
    """Refuses streams of events and logs beyond what one identity or one address may have open (429): each keeps a
    connection, and goes on asking the database for news. To be run behind BearerAuth."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or STREAMS.fullmatch(scope["path"]) is None:
            await self._app(scope, receive, send)
            return
        holders = _holders(scope)
        for holder, (what, most) in holders.items():
            if self._open[holder] >= most:
                detail = (
                    f"{what} has {most} streams of events and logs open, which is all that it may: end some of them"
                )
                answer = problem(429, detail, headers={"Retry-After": str(STREAM_AGAIN_S)})
                await answer(scope, receive, send)
                return
        self._open.update(holders.keys())
        try:
            await self._app(scope, receive, send)
        finally:
            self._open.subtract(holders.keys())
            for holder in holders:
                if self._open[holder] == 0:
                    del self._open[holder]


def _holders(scope: Scope) -> dict[str, tuple[str, int]]:
    """Whom a stream counts for, each with how it is called and how many it may have."""
    name = scope["state"][IDENTITY].name  # of an access token or, for tokens of an identity provider, of the person
    address = scope["client"][0] if scope.get("client") else ""
    return {
        f"token {name}": (f"token {name}", STREAMS_PER_TOKEN),
        f"address {address}": (f"the address {address}", STREAMS_PER_ADDRESS),
    }
