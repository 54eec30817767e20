"""Routes that refuse unknown query parameters, bodies that are not JSON (or YAML, where people send their files), and
keys given twice. Bodies are read in threads, a few at a time: a large one takes a while, and leases are renewed
meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import yaml
from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from ces_common.documents import DuplicateKey, read_json, read_yaml
from ces_manager.errors import Invalid, Malformed, TooLarge, WrongMediaType

AT_ONCE = 2  # bodies that are read
FILES = frozenset({"/v1/jobs", "/v1/plans", "/v1/decompositions"})  # what is written in files is sent there
MAX_YAML = 64 * 1024  # bytes; its reader takes a hundred times as long as that of JSON
YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})


class _ReadRequest(Request):
    """A request whose body has been read already, whatever it was sent as: the framework asks for JSON."""

    def __init__(self, request: Request, body: bytes, document: Any) -> None:
        kept = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]
        headers = [*kept, (b"content-type", b"application/json")]
        super().__init__({**request.scope, "headers": headers}, request.receive)
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

        def read(body: bytes, kind: str) -> Any:
            parsed = _parsed_yaml(body) if kind in YAML else _parsed(body)
            document, errors = field.validate(parsed, loc=("body",)) if field is not None else (None, [])
            if errors:
                raise RequestValidationError(errors)
            return document

        async def strict(request: Request) -> Response:
            _check_query(request, known)
            if field is not None and (body := await request.body()):
                document = await to_thread.run_sync(read, body, _media(request), limiter=readers)
                request = _ReadRequest(request, body, document)
            return await handle(request)

        return strict


def _check_query(request: Request, known: list[str]) -> None:
    for name in request.query_params:
        if name not in known:
            listed = f"this address knows {', '.join(known)}" if known else "this address knows none"
            raise Invalid(f"query.{name}", f"unknown query parameter; {listed}")


def _media(request: Request) -> str:
    """Of the body. Raises WrongMediaType."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise WrongMediaType(f"the body is sent as {encoding}; send it as it is, without Content-Encoding")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    takes_files = request.url.path in FILES
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return kind
    if kind in YAML and takes_files:
        return kind
    sent = f"the body is sent as {kind}" if kind else "the request does not say what its body is"
    remedy = "send JSON, with the header Content-Type: application/json"
    raise WrongMediaType(f"{sent}; {remedy}{', or a file of YAML as application/yaml' if takes_files else ''}")


def _parsed(body: bytes) -> Any:
    try:
        return read_json(body)
    except DuplicateKey as error:
        raise Invalid(error.key, str(error.problem)) from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is no JSON: {error}") from error


def _parsed_yaml(body: bytes) -> Any:
    if len(body) > MAX_YAML:
        raise TooLarge(f"a body of YAML may have {MAX_YAML} bytes; send a larger one as JSON")
    try:
        return read_yaml(body.decode(), aliases=False)
    except DuplicateKey as error:
        raise Invalid(error.key, str(error.problem)) from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is no YAML: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise Malformed(f"the body is no YAML that can be read: {line}{error.problem}") from error
    except yaml.YAMLError as error:
        raise Malformed(f"the body is no YAML: {error}") from error
