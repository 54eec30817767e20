"""A bound on what one request may send."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1024 * 1024


class BodyLimit:
    """Refuses bodies above 1 MiB, also where the length was not announced: reading on raises HTTPException 413.

    The web framework has such a limit, but answers it in plain text, not with problem details.
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
