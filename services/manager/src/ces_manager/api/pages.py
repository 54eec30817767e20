"""The dashboard's own files: read once, served compressed, asked again by their ETag, under a strict policy."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ces_manager.api.auth import PAGES, UI
from ces_manager.api.problems import problem

INDEX: Final = "index.html"
KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "worker-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types ces"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # kept, and asked again by its ETag: a new version shows at once
    "Vary": "Accept-Encoding",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    kind: str
    etag: str
    plain: bytes
    packed: bytes


def page_files() -> dict[str, PageFile]:
    """The files by their paths below ``/ui/``."""
    found: dict[str, PageFile] = {}
    _collect(files("ces_manager.ui"), "", found)
    return found


def _collect(folder: Traversable, prefix: str, found: dict[str, PageFile]) -> None:
    for each in folder.iterdir():
        if each.is_dir():
            _collect(each, f"{prefix}{each.name}/", found)
            continue
        kind = KINDS.get(each.name.rpartition(".")[2])
        if kind is not None:
            plain = each.read_bytes()
            etag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
            found[prefix + each.name] = PageFile(kind, etag, plain, gzip.compress(plain, mtime=0))


def page_routes() -> list[Route]:
    """The files, and the addresses that lead to them."""
    known = page_files()

    async def page(request: Request) -> Response:
        found = known.get(request.path_params["path"] or INDEX)
        if found is None:
            return problem(404, f"the dashboard has no file {request.url.path}")
        headers = HEADERS | {"ETag": found.etag}
        if found.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(found.packed, media_type=found.kind, headers=headers | {"Content-Encoding": "gzip"})
        return Response(found.plain, media_type=found.kind, headers=headers)

    async def home(_: Request) -> Response:
        return RedirectResponse(UI)

    return [Route(UI + "{path:path}", page), *(Route(path, home) for path in sorted(PAGES))]
