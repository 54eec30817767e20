"""Routes that refuse unknown query parameters, bodies that are not JSON, and keys given twice."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from ces_common.documents import DuplicateKey, read_json
from ces_manager.errors import Invalid, Malformed, WrongMediaType


class StrictRoute(APIRoute):
    """The framework itself reads such requests as something else, and then refuses what it took them for."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = [field.alias for field in self.dependant.query_params]

        async def strict(request: Request) -> Response:
            _check_query(request, known)
            if self.body_field is not None:
                _check_body(request, await request.body())
            return await handle(request)

        return strict


def _check_query(request: Request, known: list[str]) -> None:
    for name in request.query_params:
        if name not in known:
            listed = f"this address knows {', '.join(known)}" if known else "this address knows none"
            raise Invalid(f"query.{name}", f"unknown query parameter; {listed}")


def _check_body(request: Request, body: bytes) -> None:
    if not body:
        return
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        sent = f"the body is sent as {kind}" if kind else "the request does not say what its body is"
        raise WrongMediaType(f"{sent}; send JSON, with the header Content-Type: application/json")
    try:
        read_json(body)
    except DuplicateKey as error:
        raise Invalid(error.key, str(error.problem)) from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is no JSON: {error}") from error
