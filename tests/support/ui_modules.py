"""Modules of the dashboard in a browser without a manager, for tests of what in them computes only."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dashboard_page import browser
from playwright.sync_api import Page, Route

UI = Path(__file__).parents[2] / "services/manager/src/ces_manager/ui"
ORIGIN = "http://dashboard.test"
TYPES = {".js": "text/javascript", ".css": "text/css"}
LIMIT_MS = 120_000
EMPTY = "<!doctype html><html lang=en><div id=app></div>"


class Modules:
    """``thread``: the one in which the browser was started, and the only one from which it may be asked."""

    def __init__(self, page: Page, thread: Executor) -> None:
        self._page, self._thread = page, thread

    def run(self, body: str, **values: Any) -> Any:
        """What an async function with this body gives, as JSON knows it. ``load``: gives a module by its path below
        ``app/``; ``given``: the values. Raises an error of the browser's where it takes longer than LIMIT_MS: nobody
        could end it, and whoever closes the browser would wait for it."""
        load = "const load = (path) => import(`/ui/app/${path}.js`);"
        late = f"new Promise((_, fail) => setTimeout(() => fail(new Error('it takes too long')), {LIMIT_MS}))"
        script = f"(given) => Promise.race([(async () => {{ {load}\n{body} }})(), {late}])"
        return self._thread.submit(self._page.evaluate, script, values).result()


@contextmanager
def modules() -> Iterator[Modules]:
    """In a thread of its own: playwright keeps an event loop running where it was started, and asyncio's tests could
    not run there as long as the browser lives."""
    with ThreadPoolExecutor(max_workers=1) as thread, ExitStack() as open_things:
        page = thread.submit(_empty_page, open_things).result()
        try:
            yield Modules(page, thread)
        finally:
            thread.submit(open_things.close).result()


def _empty_page(open_things: ExitStack) -> Page:
    page = open_things.enter_context(browser()).browser.new_page()
    page.route(f"{ORIGIN}/**", _answer)
    page.goto(f"{ORIGIN}/ui/")
    return page


def _answer(route: Route) -> None:
    path = route.request.url.removeprefix(f"{ORIGIN}/ui/").partition("?")[0]
    file = UI / path
    if not path:
        route.fulfill(content_type="text/html", body=EMPTY)
    elif file.is_file():
        route.fulfill(content_type=TYPES[file.suffix], body=file.read_text())
    else:
        route.fulfill(status=404)
