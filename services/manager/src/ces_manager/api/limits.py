"""A bound on what one request may send."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ces_manager.api.problems import problem

MAX_BODY = 1024 * 1024


class _TooLarge(Exception):
    pass


class BodyLimit:
    """Refuses bodies above 1 MiB, also where the length was not announced."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = 0
        answered = False

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MAX_BODY:
                raise _TooLarge
            return message

        async def watched(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, bounded, watched)
        except _TooLarge:
            if not answered:
                await problem(413, f"a request may have {MAX_BODY} bytes")(scope, receive, send)
