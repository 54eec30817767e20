"""What all parts of the SDK do: read answers as models, and lists page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from ces_client.errors import UnexpectedAnswer
from ces_client.http import Http
from ces_common.messages.api import Page

M = TypeVar("M", bound=BaseModel)
P = TypeVar("P", bound=Page[Any])
MOST = "500"  # what one page of a list may hold


class Resource:
    """Requests to a part of the API, and its answers as models."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def _read(self, model: type[M], response: httpx.Response) -> M:
        try:
            return model.model_validate_json(response.content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the body"
            cause = f"{response.request.method} {response.request.url.path}: {where}: {first['msg']}"
            raise UnexpectedAnswer(self._http.url, cause) from error

    def _pages(self, page_model: type[P], path: str, params: Mapping[str, str] | None = None) -> Iterator[P]:
        query = dict(params or {})
        while True:
            page = self._read(page_model, self._http.request("GET", path, params=query))
            yield page
            if page.next is None:
                return
            query["cursor"] = page.next

    def _items(self, model: type[M], path: str, params: Mapping[str, str] | None = None) -> Iterator[M]:
        return (item for page in self._pages(Page[model], path, params) for item in page.items)  # type: ignore[valid-type]


def path_of(*parts: str) -> str:
    """A path whose parts are escaped."""
    return "/".join(quote(part, safe="") for part in parts)
