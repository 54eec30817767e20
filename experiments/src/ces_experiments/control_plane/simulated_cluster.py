"""A started cluster without agents is given simulated ones, and jobs."""

from __future__ import annotations

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import stamina
from rich.progress import Progress

from ces_common.bus.port import BusUnavailable
from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile
from ces_common.states import JOB_OVER
from ces_experiments.common.console import counted
from ces_experiments.common.emulated import PATIENT
from ces_experiments.common.interruption import ended_tidily
from ces_experiments.control_plane.any_manager import AnyManager
from ces_experiments.control_plane.simulated_agents import SimulatedNode
from ces_testbed.cluster import Cluster
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, Timing, free_port
from ces_testbed.topology import TestbedNode, Topology

SUBMITTERS = 8
READY_S = 120.0
OVER = frozenset(f"ces.v1.job.{state.value}" for state in JOB_OVER)
JOINING = 8  # nodes at a time
CONNECTING = 32
LOOK_S = 0.5


@dataclass(frozen=True)
class Alike:
    """How many managers, and schedulers, run side by side."""

    managers: int = 1
    schedulers: int = 1


ALONE = Alike()


@contextmanager
def central_services(
    database_url: str | None = None,
    queue: Path | None = None,
    timing: Timing = PATIENT,
    alike: Alike = ALONE,
    encrypted: bool = True,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Cluster]:
    """A cluster without agents, in a folder that goes with it. ``queue``: the file of the queue's parameters;
    ``settings``: further ones of the manager."""
    placeholder = Topology(nodes=[TestbedNode(name="unused", cpu=1000, memory=2**30)])
    with ended_tidily(), tempfile.TemporaryDirectory(prefix="ces-bench-") as folder:
        spec = ClusterSpec(
            name="bench",
            api_port=free_port(LOCALHOST, set()),
            topology=placeholder,
            save_context=False,
            timing=timing,
            log_level="warning",
            database_url=database_url,
            queue=queue,
            managers=alike.managers,
            schedulers=alike.schedulers,
            encrypted=encrypted,
            settings=dict(settings),
        )
        with Cluster(spec, Files(Path(folder) / "cluster"), agents=False) as cluster:
            yield cluster


def connection(cluster: Cluster) -> httpx.AsyncClient:
    """To the API of any of its managers, as its administrator; close it."""
    headers = {"Authorization": f"Bearer {cluster.token}"}
    transport = AnyManager([cluster.layout.url(name) for name in cluster.layout.managers], tls=cluster.layout.tls())
    return httpx.AsyncClient(base_url=cluster.url, headers=headers, timeout=60, transport=transport)


@asynccontextmanager
async def agents(
    cluster: Cluster,
    http: httpx.AsyncClient,
    nodes: Sequence[SimulatedNode],
    topology: TopologyFile,
    progress: Progress,
) -> AsyncIterator[None]:
    """The nodes join, get their links and work until the end of the block."""
    await _all_join(http, nodes, counted(progress, "nodes joined", len(nodes)))
    answer = await http.put("/v1/topology", json=topology.model_dump(mode="json", exclude_defaults=True))
    answer.raise_for_status()
    tls = cluster.layout.tls()
    connecting, connected = asyncio.Semaphore(CONNECTING), counted(progress, "nodes connected", len(nodes))
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[None]] = []

        async def start(node: SimulatedNode) -> None:
            async with connecting:
                async for attempt in stamina.retry_context(on=BusUnavailable, attempts=5, timeout=None):
                    with attempt:  # a broker gives clients two seconds to say who they are, which many at once exceed
                        await node.connect(tls)
            tasks.append(group.create_task(node.run()))
            connected()

        await asyncio.gather(*map(start, nodes))
        await _all_ready(http, len(nodes))
        for node in nodes:
            node.forget()
        gc.collect()
        gc.freeze()  # collecting garbage among thousands of agents would keep every one of them from its heartbeat
        try:
            yield
        finally:
            gc.unfreeze()
        for task in tasks:
            task.cancel()


async def _all_join(http: httpx.AsyncClient, nodes: Sequence[SimulatedNode], joined: Callable[[], None]) -> None:
    left = iter(nodes)

    async def join() -> None:
        for node in left:
            token = (await http.post("/v1/nodes/tokens", json={"node": node.name})).json()["token"]
            await node.join(http, token)
            joined()

    await asyncio.gather(*(join() for _ in range(JOINING)))


async def _all_ready(http: httpx.AsyncClient, count: int) -> None:
    """Raises TimeoutError when no more nodes became ready for as long as all of a small cluster may take."""
    best = 0
    while best < count:
        best = await _more_than(http, best)


async def _more_than(http: httpx.AsyncClient, best: int) -> int:
    async with asyncio.timeout(READY_S):
        while True:
            with suppress(httpx.TransportError):  # a busy manager closes connections that others want to use again
                if (ready := await _ready(http)) > best:
                    return ready
            await asyncio.sleep(LOOK_S)


async def _ready(http: httpx.AsyncClient) -> int:
    ready, cursor = 0, ""
    while True:
        answer = await http.get("/v1/nodes", params={"limit": "500"} | ({"cursor": cursor} if cursor else {}))
        page: dict[str, Any] = answer.json()
        ready += sum(1 for node in page["items"] if node["state"] == "ready")
        cursor = page.get("next") or ""
        if not cursor:
            return ready


async def submit(
    http: httpx.AsyncClient, jobs: Iterable[JobFile], count: int, progress: Progress, rate: float = 0.0
) -> list[float]:
    """Submit every job, ``rate`` of them per second (0: as fast as the API takes them); gives how long each submission
    took, in seconds."""
    bar = progress.add_task("jobs submitted", total=count)
    left = enumerate(jobs)
    start, took = time.monotonic(), []

    async def submitter() -> None:
        for index, job in left:
            if rate:
                await asyncio.sleep(max(0.0, start + index / rate - time.monotonic()))
            sent = time.monotonic()
            again = {"Idempotency-Key": job.name}  # where the answer is lost with its manager, the job is the same
            (await http.post("/v1/jobs", json=job.model_dump(mode="json"), headers=again)).raise_for_status()
            took.append(time.monotonic() - sent)
            progress.advance(bar)

    await asyncio.gather(*(submitter() for _ in range(SUBMITTERS)))
    return took


async def until_over(http: httpx.AsyncClient, count: int, progress: Progress, limit_s: float) -> list[dict[str, Any]]:
    """The log's events from its beginning until ``count`` jobs are over, or the time is up."""
    events, over = [], counted(progress, "jobs over", count)
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s), aclosing(events_of(http)) as log:
            async for event in log:
                events.append(event)
                if event["type"] in OVER:
                    over()
                    count -= 1
                if not count:
                    break
    return events


async def events_of(http: httpx.AsyncClient) -> AsyncGenerator[dict[str, Any], None]:
    """The log's events, without end, also where the manager that tells them is killed."""
    last = 0
    while True:
        with suppress(httpx.TransportError):
            async with http.stream("GET", "/v1/events", params={"after": last}, timeout=None) as stream:
                stream.raise_for_status()
                async for line in stream.aiter_lines():
                    event = json.loads(line[6:]) if line.startswith("data: {") else {}
                    if "sequence" in event:
                        last = event["sequence"]
                        yield event
