"""Routes that refuse unknown query parameters, bodies that are not JSON, and keys given twice. Bodies are read in
threads, a few at a time: a large one takes a while, and leases are renewed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from ces_common.documents import DuplicateKey, read_json
from ces_manager.errors import Invalid, Malformed, WrongMediaType

AT_ONCE = 2  # bodies that are read


class _ReadRequest(Request):
    """A request whose body has been read already."""

    def __init__(self, request: Request, body: bytes, document: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._given, self._document = body, document

    async def body(self) -> bytes:
        return self._given

    async def json(self) -> Any:
        return self._document


class StrictRoute(APIRoute):
    """The framework itself reads such requests as something else, and then refuses what it took them for."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = [field.alias for field in self.dependant.query_params]
        field, readers = self.body_field, CapacityLimiter(AT_ONCE)

        def read(body: bytes) -> Any:
            document, errors = field.validate(_parsed(body), loc=("body",)) if field is not None else (None, [])
            if errors:
                raise RequestValidationError(errors)
            return document

        async def strict(request: Request) -> Response:
            _check_query(request, known)
            if field is not None and (body := await request.body()):
                _check_media(request)
                document = await to_thread.run_sync(read, body, limiter=readers)
                request = _ReadRequest(request, body, document)
            return await handle(request)

        return strict


def _check_query(request: Request, known: list[str]) -> None:
    for name in request.query_params:
        if name not in known:
            listed = f"this address knows {', '.join(known)}" if known else "this address knows none"
            raise Invalid(f"query.{name}", f"unknown query parameter; {listed}")


def _check_media(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise WrongMediaType(f"the body is sent as {encoding}; send it as it is, without Content-Encoding")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        sent = f"the body is sent as {kind}" if kind else "the request does not say what its body is"
        raise WrongMediaType(f"{sent}; send JSON, with the header Content-Type: application/json")


def _parsed(body: bytes) -> Any:
    try:
        return read_json(body)
    except DuplicateKey as error:
        raise Invalid(error.key, str(error.problem)) from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is no JSON: {error}") from error
