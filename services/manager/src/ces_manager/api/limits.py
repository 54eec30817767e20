"""Limits of every request: the size of its body, no zero characters."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ces_manager.api.problems import problem

MAX_BODY = 1024 * 1024


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
