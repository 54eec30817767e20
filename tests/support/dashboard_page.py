"""The dashboard in a real browser, and what must hold on each of its pages: no error, no breach of its policy, and no
request to anybody but the manager."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from own_network import OwnNetwork, own_network
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

PATIENCE_MS = 60_000
PLACES = ("", "map", "nodes", "links", "queue", "jobs", "submit", "events", "replay", "policy", "audit")
ONE_TASK = "name: typed\ntasks:\n- name: w\n  command: [sleep, '1']\n  resources: {cpu: 500m, memory: 64Mi}\n"
SERIOUS = ("serious", "critical")
VIOLATIONS = """
window.cesViolations = [];
addEventListener("securitypolicyviolation", (event) => {
  window.cesViolations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""


@dataclass(frozen=True)
class Chromium:
    """``network``: the one that the browser is in; None: the machine's, where no other one may be made."""

    browser: Browser
    network: OwnNetwork | None

    def reaching(self, port: int) -> AbstractContextManager[None]:
        """While this lasts, the browser finds at a port of its own loopback what is at that port of the machine's."""
        return self.network.way_out(port) if self.network else nullcontext()


@contextmanager
def browser() -> Iterator[Chromium]:
    """In a network whose devices stay as they are, whatever other tests do, where that may be made."""
    expect.set_options(timeout=PATIENCE_MS)
    with ExitStack() as open_things:
        network = open_things.enter_context(own_network())
        with network.entered() if network else nullcontext():  # playwright's own process starts the browser
            play = open_things.enter_context(sync_playwright())
        started = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield Chromium(started, network)
        started.close()


@contextmanager
def dashboard(environment: Mapping[str, str]) -> Iterator[str]:
    """``ces dashboard`` as a user runs it; gives the address that it prints, which is good once."""
    command = [str(Path(sys.executable).with_name("ces")), "dashboard", "--no-browser", "--port", "0"]
    env = {**os.environ, **environment, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/ui/#code=\S+", line)
        try:
            assert found is not None, line
            yield found[0]
        finally:
            running.send_signal(signal.SIGINT)
        try:
            assert running.wait(60) == 0
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGABRT)  # tells on standard error what it is doing
            raise


@dataclass
class Tab:
    """A page of the dashboard, and everything that went wrong on it. ``excused``: messages that a test brings about,
    such as those of requests to a manager that was killed."""

    page: Page
    origin: str
    problems: list[str] = field(default_factory=list)
    excused: str = r"(?!)"

    def go(self, place: str) -> None:
        self.page.goto(f"{self.origin}/ui/#/{place}")

    def heading(self, name: str) -> None:
        """Wait until the page of this name is shown."""
        self.page.get_by_role("heading", level=1).filter(has_text=name).wait_for(timeout=PATIENCE_MS)

    def text(self, text: str | re.Pattern[str]) -> None:
        """Wait until the page says this."""
        self.page.locator("main").get_by_text(text).first.wait_for(timeout=PATIENCE_MS)

    def axe(self) -> list[str]:
        """What people with assistive technology could not use."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{self.page.url}: {each['id']}: {node['target']} {node['failureSummary']}"
            for each in found
            if each["impact"] in SERIOUS
            for node in each["nodes"]
        ]

    def check(self) -> None:
        violations = self.page.evaluate("window.cesViolations")
        assert [*violations, *(each for each in self.problems if not re.search(self.excused, each))] == []


@contextmanager
def tab(chromium: Chromium, address: str, **options: object) -> Iterator[Tab]:
    """A browser of its own, led to an address; after the block nothing may have gone wrong."""
    parts = urlsplit(address)
    context = chromium.browser.new_context(**options)  # type: ignore[arg-type]
    context.add_init_script(VIOLATIONS)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    made = Tab(page, f"{parts.scheme}://{parts.netloc}")

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            made.problems.append(f"console: {message.text} {message.location.get('url')}")

    def asked(request: Request) -> None:
        if not request.url.startswith((made.origin + "/", "data:", "blob:" + made.origin)):
            made.problems.append(f"foreign request: {request.url}")

    page.on("console", said)
    page.on("request", asked)
    page.on("pageerror", lambda error: made.problems.append(f"error: {error}"))
    with chromium.reaching(parts.port or 80), closing(context):
        page.goto(address)
        yield made
        made.check()


class Open(Protocol):
    """Opens the dashboard; ``heading``: of the first page in the browser's language."""

    def __call__(
        self, token: str | None = None, heading: str = "Overview", **options: Any
    ) -> AbstractContextManager[Tab]: ...
