"""The benchmark of the queue, run: all jobs are submitted at once, and when all are over the log is audited."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
from rich.progress import Progress

from ces_client.audit import Ground
from ces_client.auditing import asked_by, events_until_now, judge, links_of_file
from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile
from ces_common.states import JOB_OVER
from ces_core.bench.machine import describe
from ces_core.bench.results import write_results
from ces_testbed.bench.load import chord_topology, node_names
from ces_testbed.bench.queue.history import fates, longest_queue, seconds, waits
from ces_testbed.bench.queue.load import LINK, QueueLoad, job, runs_s
from ces_testbed.bench.simulated import SimulatedNode
from ces_testbed.bench.simulated_cluster import agents, central_services, connection, cpu_seconds, submit
from ces_testbed.cluster import Cluster

LIMIT_S = 1800.0
OVER = frozenset(f"ces.v1.job.{state.value}" for state in JOB_OVER)


def run(
    load: QueueLoad, out: Path, progress: Progress, database_url: str | None = None, queue: Path | None = None
) -> dict[str, Any]:
    """Start a cluster without agents, put the load on it, and write ``results.json`` under ``out``. ``queue``: the file
    of the queue's parameters. Jobs that do not come to their end are among the audit's findings."""
    jobs = {file.name: file for file in (job(load, index) for index in range(load.jobs))}
    machine = describe()
    with central_services(database_url, queue) as cluster:
        cpu = asyncio.run(drive(cluster, load, jobs, progress))
        with cluster.client() as client:
            events = list(events_until_now(client))
    asked = {name: asked_by(file) for name, file in jobs.items()}
    verdict = judge(events, Ground(jobs=asked, **links_of_file(_topology(load))), finished=True)
    found = fates(events)
    results = {
        "load": asdict(load),
        "database": (database_url or "sqlite").partition(":")[0].partition("+")[0],
        "seconds": seconds(found),
        "states": dict(Counter(fate.state for fate in found)),
        "placed_again": sum(max(fate.plans - 1, 0) for fate in found),
        "longest_queue": longest_queue(found),
        "waits": waits(found, jobs),
        "cpu_s": cpu,
        "audit": verdict.to_dict(),
        "machine": machine,
    }
    write_results(out, results)
    return results


def _topology(load: QueueLoad) -> TopologyFile:
    return chord_topology(node_names(load.nodes), LINK)


async def drive(cluster: Cluster, load: QueueLoad, jobs: Mapping[str, JobFile], progress: Progress) -> dict[str, float]:
    """Put the jobs on a started cluster until all are over, or half an hour has passed. Gives the CPU seconds that each
    central service has used for them."""
    nodes = [SimulatedNode(name, runs_s) for name in node_names(load.nodes)]
    async with connection(cluster) as http, agents(http, nodes, _topology(load), progress):
        before = cpu_seconds(cluster)
        async with asyncio.TaskGroup() as group:
            group.create_task(_until_over(http, len(jobs), progress))
            await submit(http, jobs.values(), len(jobs), progress)
        return {name: round(used - before.get(name, 0.0), 2) for name, used in cpu_seconds(cluster).items()}


async def _until_over(http: httpx.AsyncClient, count: int, progress: Progress) -> None:
    bar = progress.add_task("jobs over", total=count)
    over = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(LIMIT_S), http.stream("GET", "/v1/events", timeout=None) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("event: ") and line.removeprefix("event: ").strip() in OVER:
                    over += 1
                    progress.advance(bar)
                if over == count:
                    return
