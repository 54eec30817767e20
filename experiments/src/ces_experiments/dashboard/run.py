"""The benchmark of the dashboard, run: a made-up cluster on real services, looked at by browsers and by others."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import asdict
from typing import Any

from playwright.async_api import async_playwright
from rich.progress import Progress

from ces_experiments.common.report import Found
from ces_experiments.control_plane.simulated_cluster import agents, central_services, connection
from ces_experiments.dashboard import pages
from ces_experiments.dashboard.made_up import Asked, simulated
from ces_experiments.dashboard.viewers import measure_viewers
from ces_testbed.cluster import Cluster


def measure(asked: Asked, progress: Progress) -> Found:
    """What goes wrong in a page makes it a failure; goals that are missed do not."""
    with central_services() as cluster:
        found = asyncio.run(_look(cluster, asked, progress))
    problems = found["problems"]
    failure = f"{len(problems)} things went wrong in pages: {problems[0]}" if problems else None
    return Found({"asked": asdict(asked)} | found, raw={"heap.csv": found["heap"]["samples"]}, failure=failure)


async def _look(cluster: Cluster, asked: Asked, progress: Progress) -> dict[str, Any]:
    nodes, topology = simulated(asked)
    origin = cluster.url.rstrip("/")
    async with connection(cluster) as http, agents(cluster, http, nodes, topology, progress):
        seen = await measure_viewers(cluster, asked, progress)
        async with async_playwright() as play:
            browser = await play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            first = await pages.first_visits(browser, http, origin, asked.visits)
            without, problems = await pages.map_pictures(browser, http, origin, asked.visits)
            async with pages.visit(browser, origin) as made:
                await pages.sign_in(made, http, origin)
                await made.page.evaluate("location.hash = '#/map'")
                await pages.until(made.page, "bench.settled")
                kept = await pages.keep_places(made, http)
                frames = await pages.frames(made)
            problems += made.problems
            saved, more = await pages.map_pictures(browser, http, origin, asked.visits)
            async with pages.visit(browser, origin) as used:
                await pages.sign_in(used, http, origin)
                heap = await pages.heap(used, asked.minutes, progress)
            await browser.close()
    return {
        "links": 2 * len(topology.links),
        "kept_places": kept,
        "first_visit": {name: value for name, value in first.items() if name != "problems"},
        "map": {"without": without, "saved": saved},
        "frames_ms": frames,
        "heap": heap,
        "viewers": seen,
        "disturbances": used.disturbances,
        "problems": [*first["problems"], *problems, *more, *used.problems],
    }
