"""The control plane under load: real services, NATS and database; agents simulated below the wire."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.progress import Progress

from ces_common.states import JOB_OVER, JobState
from ces_core.bench.results import write_results
from ces_testbed.bench.load import (
    Moments,
    Spread,
    chord_topology,
    node_names,
    ring_job,
    stages,
    throughput,
    waits,
)
from ces_testbed.bench.outcome import Load, Outcome
from ces_testbed.bench.plots import control_plane_plots
from ces_testbed.bench.simulated import SimulatedNode
from ces_testbed.bench.simulated_cluster import CENTRAL, agents, central_services, connection, cpu_seconds, submit
from ces_testbed.cluster import Cluster

LIMIT_S = 600.0


async def drive(cluster: Cluster, load: Load, console: Console) -> tuple[Outcome, Moments]:
    """Put the load on a started cluster without agents, and measure until every job is over."""
    names = node_names(load.nodes)
    nodes = [SimulatedNode(name, lambda _: load.run_s) for name in names]
    async with connection(cluster) as http:
        with Progress(console=console, transient=True) as progress:
            async with agents(http, nodes, chord_topology(names), progress):
                before, started = cpu_seconds(cluster), time.monotonic()
                messages = await _messages(cluster)
                jobs = (ring_job(index, load.tasks, load.seed) for index in range(load.jobs))
                submits = await submit(http, jobs, load.jobs, progress, load.rate)
                await _all_over(http, load, progress)
                spent, elapsed = cpu_seconds(cluster), time.monotonic() - started
                messages = await _messages(cluster) - messages
                beats = [beat for node in nodes for beat in node.beats]
        moments, events = await _history(http)
    outcome = Outcome(load, (cluster.spec.database_url or "sqlite").partition(":")[0].partition("+")[0])
    outcome.running = len(waits(moments))
    outcome.succeeded = sum("succeeded" in reached for reached in moments.values())
    outcome.jobs_per_s = round(throughput(moments), 2)
    outcome.submit_to_running_ms = Spread.of(waits(moments))
    outcome.api_submit_ms = Spread.of(submits)
    outcome.stages_ms = stages(moments)
    outcome.messages_per_job = round((messages - 2 * len(beats)) / load.jobs, 1)
    outcome.events_per_job = round(events / load.jobs, 1)
    outcome.heartbeats_per_s = round(len(beats) / elapsed, 1)
    outcome.heartbeat_ms = Spread.of(beats)
    outcome.cpu_ms_per_job = {
        name: round((spent[name] - before[name]) * 1000 / load.jobs, 2) for name in CENTRAL if name in before
    }
    return outcome, moments


async def _all_over(http: httpx.AsyncClient, load: Load, progress: Progress) -> None:
    bar = progress.add_task("jobs over", total=load.jobs)
    over = 0
    async with asyncio.timeout(LIMIT_S):
        while over < load.jobs:
            over = 0
            for state in JOB_OVER:
                over += await _count(http, state)
            progress.update(bar, completed=over)
            await asyncio.sleep(1.0)


async def _count(http: httpx.AsyncClient, state: JobState) -> int:
    count, cursor = 0, None
    while True:
        params: dict[str, Any] = {"state": state.value, "limit": 500} | ({"cursor": cursor} if cursor else {})
        page = (await http.get("/v1/jobs", params=params)).json()
        count, cursor = count + len(page["items"]), page["next"]
        if cursor is None:
            return count


async def _history(http: httpx.AsyncClient) -> tuple[Moments, int]:
    """When each job first reached each state, from the event stream; and the number of events."""
    moments: dict[str, dict[str, datetime]] = defaultdict(dict)
    count = 0
    with suppress(TimeoutError):
        async with http.stream("GET", "/v1/events", timeout=10) as stream:
            lines = stream.aiter_lines()
            while True:
                line = await asyncio.wait_for(anext(lines), 3)
                if not line.startswith("data: {"):
                    continue
                event = json.loads(line[6:])
                if "sequence" not in event:
                    continue
                count += 1
                _, _, aggregate, state = event["type"].split(".")
                if aggregate == "job":
                    moments[event["subject"]].setdefault(state, datetime.fromisoformat(event["time"]))
    return moments, count


async def _messages(cluster: Cluster) -> int:
    """Messages that the broker has received from its clients so far."""
    port = cluster.layout.ports.nats_monitor
    async with httpx.AsyncClient(trust_env=False) as http:
        return int((await http.get(f"http://{cluster.layout.host}:{port}/varz")).json()["in_msgs"])


def run(load: Load, out: Path, console: Console, database_url: str | None = None) -> Outcome:
    """Start a cluster without agents, measure, and write ``results.json`` and the plots under ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    with central_services(database_url) as cluster:
        outcome, moments = asyncio.run(drive(cluster, load, console))
    write_results(out, asdict(outcome))
    control_plane_plots(outcome, moments, out)
    return outcome
