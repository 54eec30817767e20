"""What a browser without a GPU makes of the dashboard: first visits, the map, frames while panning, and the heap."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
from playwright.async_api import Browser, CDPSession, ConsoleMessage, Page
from rich.progress import Progress

from ces_experiments.common.console import counted
from ces_experiments.common.spread import spread

PATIENCE_MS = 120_000
LOOK_S = 0.02
SIZE = {"width": 1280, "height": 800}
PAN_S, PANS = 4.0, 4
STEP_PX, STEP_S = 9, 0.012
NEARER = 5  # clicks on + for the second look at frames
HEAP_EVERY_S = 15.0
WARM_S = 45.0  # until caches are full, which is no growth
HOUR_S = 3600.0
PLACES = ("", "map", "nodes", "links", "queue", "jobs", "events", "map")  # what is looked at in turn

DISTURBED = re.compile("ERR_NETWORK_CHANGED|ERR_TOO_MANY_RETRIES")

# In every page before its own programs: when it can be used, and when the map's places have come to rest.
WATCH = """
window.bench = { usable: 0, settled: 0, problems: [] };
addEventListener("securitypolicyviolation", (event) => bench.problems.push(event.violatedDirective));
new MutationObserver(() => {
  const live = document.querySelector("header .live .good");
  if (!bench.usable && live && document.querySelector("main h1") && !document.querySelector("main .quiet:only-child")) {
    requestAnimationFrame(() => setTimeout(() => (bench.usable ||= performance.now())));
  }
  const drawn = performance.getEntriesByName("map-drawn").length;
  if (drawn && !document.querySelector(".map-note")) bench.settled ||= performance.now();
}).observe(document, { childList: true, subtree: true, characterData: true, attributes: true });
"""
FRAMES = """
window.frames = [];
(function next(now) { frames.push(now); requestAnimationFrame(next); })(performance.now());
"""


@dataclass
class Visit:
    """One browser without anything kept. ``files``: bytes on the wire and number of requests below ``/ui/``; ``api``:
    those to the manager's API. ``disturbances``: requests that the browser broke off because a network device of the
    machine came or went, as those of emulated hosts do."""

    page: Page
    cdp: CDPSession
    files: list[float] = field(default_factory=list)
    api: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    streams: int = 0
    disturbances: int = 0


@asynccontextmanager
async def visit(browser: Browser, origin: str) -> AsyncIterator[Visit]:
    context = await browser.new_context(ignore_https_errors=True, viewport=SIZE, locale="en-GB")  # type: ignore[arg-type]
    await context.add_init_script(WATCH)
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    cdp = await context.new_cdp_session(page)
    await cdp.send("Network.enable")
    made, paths = Visit(page, cdp), dict[str, str]()

    def said(message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if DISTURBED.search(message.text):
            made.disturbances += 1
        else:
            made.problems.append(message.text)

    page.on("console", said)
    page.on("pageerror", lambda error: made.problems.append(str(error)))

    def asked(event: dict[str, Any]) -> None:
        url = event["request"]["url"]
        if url.startswith("data:"):
            return
        if not url.startswith(origin):
            made.problems.append(f"a request elsewhere: {url}")
        paths[event["requestId"]] = urlsplit(url).path
        if paths[event["requestId"]] == "/v1/live":
            made.streams += 1

    def over(event: dict[str, Any]) -> None:
        path = paths.get(event["requestId"])
        if path is not None:
            (made.files if path.startswith("/ui/") else made.api).append(event["encodedDataLength"])

    cdp.on("Network.requestWillBeSent", asked)
    cdp.on("Network.loadingFinished", over)
    try:
        yield made
        made.problems += await page.evaluate("bench.problems")
    finally:
        await context.close()


async def until(page: Page, expression: str) -> None:
    """Asked from outside again and again: the page's policy forbids what playwright's own waiting would evaluate in it.
    Raises TimeoutError."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while not await page.evaluate(expression):
        if time.monotonic() > end:
            raise TimeoutError(f"{expression} is not so on {page.url}: {await page.inner_text('body')!r:.500}")
        await asyncio.sleep(LOOK_S)


async def sign_in(made: Visit, http: httpx.AsyncClient, origin: str) -> None:
    answer = await http.post("/v1/sessions/codes")
    answer.raise_for_status()
    await made.page.goto(f"{origin}/ui/#code={answer.json()['code']}")
    await until(made.page, "bench.usable")


async def first_visits(browser: Browser, http: httpx.AsyncClient, origin: str, visits: int) -> dict[str, Any]:
    """Of browsers that have never been here: bytes and requests, first paint and when the overview can be used."""
    found: dict[str, list[float]] = {"bytes": [], "requests": [], "api_requests": [], "paint_s": [], "usable_s": []}
    problems: list[str] = []
    for _ in range(visits):
        async with visit(browser, origin) as made:
            await sign_in(made, http, origin)
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            painted, usable = await made.page.evaluate(f"[{paint}, bench.usable]")
            await asyncio.sleep(0.3)  # what has arrived is told a little later
            for name, value in (
                ("bytes", sum(made.files)),
                ("requests", len(made.files)),
                ("api_requests", len(made.api) + made.streams),
                ("paint_s", painted / 1000),
                ("usable_s", usable / 1000),
            ):
                found[name].append(value)
        problems += made.problems
    return {name: spread(values) for name, values in found.items()} | {"problems": problems}


async def map_pictures(
    browser: Browser, http: httpx.AsyncClient, origin: str, visits: int
) -> tuple[dict[str, Any], list[str]]:
    """From loading the address of the map until it is drawn, and until places have come to rest, by browsers that have
    seen the overview only."""
    drawn, settled, problems = list[float](), list[float](), list[str]()
    for _ in range(visits):
        async with visit(browser, origin) as made:
            await sign_in(made, http, origin)
            await made.page.evaluate("location.hash = '#/map'")
            await made.page.evaluate("localStorage.clear()")
            await made.page.reload()
            await until(made.page, "bench.settled")
            mark = "performance.getEntriesByName('map-drawn')[0].startTime"
            first, rest = await made.page.evaluate(f"[{mark}, bench.settled]")
            drawn.append(first / 1000)
            settled.append(max(first, rest) / 1000)
        problems += made.problems
    return {"drawn_s": spread(drawn), "settled_s": spread(settled)}, problems


async def keep_places(made: Visit, http: httpx.AsyncClient) -> int:
    """What this browser laid out is kept by the manager, for everybody."""
    kept = await made.page.evaluate("JSON.parse(localStorage.getItem('ces.map'))")
    positions = {name: place[:2] for name, place in kept.items()}
    (await http.put("/v1/layout", json={"positions": positions})).raise_for_status()
    return len(positions)


async def frames(made: Visit) -> dict[str, Any]:
    """Milliseconds between frames while the map is dragged to and fro, with everything in view and from near."""
    await until(made.page, "bench.settled")
    await made.page.evaluate(FRAMES)
    found = {"whole": await _panned(made.page)}
    for _ in range(NEARER):
        await made.page.get_by_role("button", name="Closer").click()
    await asyncio.sleep(1)
    return {
        name: spread(each) | {"p95": float(np.percentile(each, 95))}
        for name, each in (found | {"near": await _panned(made.page)}).items()
    }


async def _panned(page: Page) -> list[float]:
    box = await page.locator(".map-picture canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    found: list[float] = []
    for index in range(PANS):
        await page.mouse.move(x, y)
        await page.mouse.down()
        await page.evaluate("window.frames.length = 0")
        end, at = time.monotonic() + PAN_S / PANS, 0
        while time.monotonic() < end:
            at += STEP_PX if index % 2 else -STEP_PX
            await page.mouse.move(x + at, y + at / 3)
            await asyncio.sleep(STEP_S)
        times: list[float] = await page.evaluate("window.frames.slice()")
        await page.mouse.up()
        found += np.diff(times).tolist()
    return found


async def heap(made: Visit, minutes: float, progress: Progress) -> dict[str, Any]:
    """Bytes of the heap after collections, while pages are gone through; the slope in an hour is that of a straight
    line through what came after the first while."""
    samples: list[tuple[float, float]] = []
    start, turn = time.monotonic(), 0
    warm = min(WARM_S, minutes * 60 / 4)
    bar = counted(progress, "looks at the heap", max(1, round((minutes * 60 + warm) / HEAP_EVERY_S)))
    while time.monotonic() < start + warm + minutes * 60 or len(samples) < 3:
        await made.page.evaluate(f"location.hash = '#/{PLACES[turn % len(PLACES)]}'")
        turn += 1
        if turn % len(PLACES) == 0:  # always on the same page
            await made.cdp.send("HeapProfiler.collectGarbage")
            used = (await made.cdp.send("Runtime.getHeapUsage"))["usedSize"]
            samples.append((time.monotonic() - start, used))
            bar()
        await asyncio.sleep(min(HEAP_EVERY_S, minutes * 6) / len(PLACES))
    after = [each for each in samples if each[0] >= warm] if len(samples) > 4 else samples
    seconds, used_bytes = np.array(after).T
    slope, _ = np.polyfit(seconds, used_bytes, 1)
    residual = used_bytes - np.polyval(np.polyfit(seconds, used_bytes, 1), seconds)
    error = float(np.sqrt((residual**2).sum() / max(1, len(after) - 2) / ((seconds - seconds.mean()) ** 2).sum()))
    return {
        "watched_s": float(seconds[-1] - seconds[0]),
        "first_bytes": float(used_bytes[0]),
        "last_bytes": float(used_bytes[-1]),
        "pages": turn,
        "growth_bytes_hour": float(slope) * HOUR_S,
        "error_bytes_hour": error * HOUR_S,
        "samples": [{"seconds": at, "bytes": used} for at, used in samples],
    }
