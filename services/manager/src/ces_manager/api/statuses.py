"""Statuses of answers, as middleware that looks on hears of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

FAILED: Final = 500


async def tell_status(app: ASGIApp, scope: Scope, receive: Receive, send: Send, tell: Callable[[int], None]) -> None:
    """Let ``app`` answer. ``tell`` hears the status, once, when the answer begins; FAILED where it never does."""
    answered = False

    async def told(message: Message) -> None:
        nonlocal answered
        if message["type"] == "http.response.start" and not answered:
            answered = True
            tell(message["status"])
        await send(message)

    try:
        await app(scope, receive, told)
    except Exception:  # the framework answers it further out, and logs what it was
        if not answered:
            tell(FAILED)
        raise
