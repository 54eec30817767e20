"""What it costs the manager that others look: its CPU time, and how long a write takes, with and without viewers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rich.progress import Progress

from ces_experiments.common.console import counted
from ces_experiments.common.service_time import cpu_seconds
from ces_experiments.common.spread import milliseconds, spread
from ces_experiments.control_plane.simulated_cluster import connection
from ces_experiments.dashboard.made_up import Asked
from ces_testbed.cluster import Cluster
from ces_testbed.services import MANAGER

LOOKS_ON_S = 45.0  # for longer than which the manager goes on looking after the last viewer has left
WRITE_EVERY_S = 0.1
SETTLED_S = 4.0  # from the first look of a round to its beginning


async def measure_viewers(cluster: Cluster, asked: Asked, progress: Progress) -> dict[str, Any]:
    """``manager_cores``: with nobody, and with all viewers; ``cost``: the difference, pair by pair. ``commit_ms``: of
    writes to the API."""
    bar = counted(progress, "rounds of viewers", asked.rounds)
    cores: dict[str, list[float]] = {"nobody": [], "viewers": []}
    took: dict[str, list[float]] = {"nobody": [], "viewers": []}
    received: list[float] = []
    for index in range(asked.rounds):
        if index:
            await asyncio.sleep(LOOKS_ON_S)
        cores["nobody"].append(await _round(cluster, asked, took["nobody"]))
        async with _followed(cluster, asked.viewers) as counts:
            before = sum(counts)
            cores["viewers"].append(await _round(cluster, asked, took["viewers"]))
            received.append((sum(counts) - before) / asked.round_s / asked.viewers)
        bar()
    cost = [seen - alone for seen, alone in zip(cores["viewers"], cores["nobody"], strict=True)]
    return {
        "manager_cores": {who: spread(values) for who, values in cores.items()},
        "cost": spread(cost),
        "cost_each_round": cost,
        "commit_ms": {who: milliseconds(values) for who, values in took.items()},
        "bytes_per_viewer_s": spread(received),
    }


async def _round(cluster: Cluster, asked: Asked, took: list[float]) -> float:
    """Cores that the manager took, while something is written ten times a second."""
    async with connection(cluster) as http:
        before, start, written = cpu_seconds(cluster)[MANAGER], time.monotonic(), 0
        while time.monotonic() < start + asked.round_s:
            sent = time.monotonic()
            word = "uncordon" if written % 2 else "cordon"
            (await http.post(f"/v1/nodes/s000/{word}")).raise_for_status()
            took.append(time.monotonic() - sent)
            written += 1
            await asyncio.sleep(max(0.0, start + written * WRITE_EVERY_S - time.monotonic()))
        spent, seconds = cpu_seconds(cluster)[MANAGER] - before, time.monotonic() - start
        if written % 2:
            (await http.post("/v1/nodes/s000/uncordon")).raise_for_status()
    return spent / seconds


@asynccontextmanager
async def _followed(cluster: Cluster, viewers: int) -> AsyncIterator[list[int]]:
    """Viewers that follow the live picture, each on a connection of its own; gives the bytes that each has received."""
    counts = [0] * viewers
    whole = [asyncio.Event() for _ in range(viewers)]

    async def follow(index: int) -> None:
        async with connection(cluster) as http, http.stream("GET", "/v1/live", timeout=None) as stream:
            stream.raise_for_status()
            async for chunk in stream.aiter_bytes():
                counts[index] += len(chunk)
                whole[index].set()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow(index)) for index in range(viewers)]
        for each in whole:
            await each.wait()
        await asyncio.sleep(SETTLED_S)  # whole pictures come at the beginning only
        try:
            yield counts
        finally:
            for task in tasks:
                task.cancel()
