"""Answers that have not changed are told so, by something cheap from which they follow, before they are made."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final

from fastapi import FastAPI, Header, Request, Response

from ces_manager.api.auth import identity_of

LONGEST: Final = 1024  # characters
IfNoneMatch = Annotated[
    str | None, Header(max_length=LONGEST, description="The `ETag` of an answer that is known: 304 if it still holds")
]
UNCHANGED: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "As it was"}}


class NotModified(Exception):
    """Whoever asks knows the answer already."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__()
        self.headers = headers


def check_known(request: Request, response: Response, known: str | None, *stamp: object) -> None:
    """Mark the answer, and raise NotModified where whoever asks has it. ``stamp``: what the answer follows from, beside
    the address and whose jobs are seen, read before the answer is: it may then be newer than its mark, never older."""
    tenants = identity_of(request).tenants
    told = (request.url.path, request.url.query, None if tenants is None else sorted(tenants), stamp)
    mark = hashlib.sha256(repr(told).encode()).hexdigest()[:32]
    headers = {"ETag": f'W/"{mark}"', "Cache-Control": "private, no-cache", "Vary": "Authorization"}
    given = [each.strip().removeprefix("W/") for each in (known or "").split(",")]
    if f'"{mark}"' in given or "*" in given:
        raise NotModified(headers)
    response.headers.update(headers)


def install(app: FastAPI) -> None:
    @app.exception_handler(NotModified)
    async def _unchanged(_: Request, unchanged: NotModified) -> Response:
        return Response(status_code=304, headers=unchanged.headers)
