"""Every refusal as RFC 9457 problem details: what is wrong, in which field, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ces_common.bus.port import BusError, NoResponder, RemoteError
from ces_common.db import UNAVAILABLE, cause_of
from ces_common.field_errors import plain_problem
from ces_common.messages.api import Problem
from ces_manager.errors import (
    Conflict,
    Forbidden,
    Invalid,
    Malformed,
    ManagerError,
    NoRole,
    NotFound,
    Overloaded,
    TooLarge,
    Unavailable,
    WrongMediaType,
)

log = structlog.get_logger()
MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid input",
    429: "Too many requests",
    500: "Internal error",
    503: "Unavailable",
}
_STATUS: dict[type[ManagerError], int] = {
    Malformed: 400,
    Forbidden: 403,
    NoRole: 403,
    NotFound: 404,
    Conflict: 409,
    TooLarge: 413,
    WrongMediaType: 415,
    Invalid: 422,
    Overloaded: 429,
    Unavailable: 503,
}
MOST_ERRORS = 50  # that an answer names
PATH_SHOWN = 200  # characters
RETRY_AFTER_S = 1  # of one that is refused for want of room


def problem(
    status: int, detail: str = "", errors: Sequence[dict[str, str]] = (), headers: dict[str, str] | None = None
) -> JSONResponse:
    body = Problem(title=TITLES.get(status, "Error"), status=status, detail=detail, errors=list(errors))
    return JSONResponse(body.model_dump(), status, media_type=MEDIA_TYPE, headers=headers)


def field_errors(errors: Sequence[Any]) -> list[dict[str, str]]:
    """pydantic's findings as field and problem; the values themselves are not echoed."""
    found = []
    for error in errors[:MOST_ERRORS]:
        path = ".".join(str(part) for part in error["loc"] if part != "body")
        found.append({"field": path or "body", "problem": plain_problem(error)})
    if len(errors) > MOST_ERRORS:
        found.append({"field": "body", "problem": f"{len(errors) - MOST_ERRORS} more mistakes are not listed"})
    return found


def install(app: FastAPI) -> None:
    """Answer every error of the app with problem details."""

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        errors = field_errors(error.errors())
        return problem(422, "; ".join(f"{e['field']}: {e['problem']}" for e in errors), errors)

    @app.exception_handler(ManagerError)
    async def _refused(_: Request, error: ManagerError) -> JSONResponse:
        errors = [{"field": error.field, "problem": error.remedy}] if isinstance(error, Invalid) else []
        headers = {"Retry-After": str(RETRY_AFTER_S)} if isinstance(error, Overloaded) else None
        return problem(_STATUS.get(type(error), 400), error.detail, errors, headers)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        detail, path = str(error.detail), request.url.path[:PATH_SHOWN]
        if detail == HTTPStatus.NOT_FOUND.phrase:  # of the router, which names nothing
            detail = f"there is no {path}: /openapi.json lists what there is"
        elif detail == HTTPStatus.METHOD_NOT_ALLOWED.phrase:
            detail = f"{path} has no {request.method}: it takes {headers.get('Allow', 'others')}"
        return problem(error.status_code, detail, headers=headers)

    @app.exception_handler(BusError)
    async def _bus(_: Request, error: BusError) -> JSONResponse:
        log.warning("a request needed the bus", error=str(error))
        if isinstance(error, RemoteError):
            return problem(503, f"the service that was asked failed: {error}")
        who = "nobody answers on the bus" if isinstance(error, NoResponder) else "the bus does not answer"
        return problem(503, f"{who}: {error}; try again in a moment")

    async def _database(_: Request, error: Exception) -> JSONResponse:
        log.error("the database does not answer", error=cause_of(error))
        return problem(503, "the database does not answer; try again in a moment")

    for kind in UNAVAILABLE:
        app.add_exception_handler(kind, _database)

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("a request failed", method=request.method, path=request.url.path, kind=type(error).__name__)
        return problem(500, "the manager failed at this; its log tells why")
