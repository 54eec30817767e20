"""Modules of the dashboard in a browser without a manager, for tests of what in them computes only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dashboard_page import browser
from playwright.sync_api import Page, Route

UI = Path(__file__).parents[2] / "services/manager/src/ces_manager/ui"
ORIGIN = "http://dashboard.test"
TYPES = {".js": "text/javascript", ".css": "text/css"}
EMPTY = "<!doctype html><html lang=en><div id=app></div>"


class Modules:
    def __init__(self, page: Page) -> None:
        self._page = page

    def run(self, body: str, **values: Any) -> Any:
        """What an async function with this body gives, as JSON knows it. ``load``: gives a module by its path below
        ``app/``; ``given``: the values."""
        load = "const load = (path) => import(`/ui/app/${path}.js`);"
        return self._page.evaluate(f"async (given) => {{ {load}\n{body} }}", values)


@contextmanager
def modules() -> Iterator[Modules]:
    def answer(route: Route) -> None:
        path = route.request.url.removeprefix(f"{ORIGIN}/ui/")
        file = UI / path
        if not path:
            route.fulfill(content_type="text/html", body=EMPTY)
        elif file.is_file():
            route.fulfill(content_type=TYPES[file.suffix], body=file.read_text())
        else:
            route.fulfill(status=404)

    with browser() as started:
        page = started.new_page()
        page.route(f"{ORIGIN}/**", answer)
        page.goto(f"{ORIGIN}/ui/")
        yield Modules(page)
