"""Real regions on this machine: whole clusters, their federation services and the hub; agents are simulated below the
wire. Everything listens on the loopback alone, and is gone afterwards."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families
from rich.progress import Progress

from ces_common.jobfile import JobFile
from ces_experiments.common.console import counted
from ces_experiments.common.emulated import PATIENT
from ces_experiments.common.interruption import ended_tidily, undisturbed
from ces_experiments.common.report import Found
from ces_experiments.common.service_time import cpu_seconds
from ces_experiments.control_plane.experiment import moments_of
from ces_experiments.control_plane.load import chord_topology
from ces_experiments.control_plane.simulated_agents import SimulatedNode
from ces_experiments.control_plane.simulated_cluster import OVER, agents, connection, events_of
from ces_experiments.regions.live_load import NODE, Load, Ran, jobs, ran, summary
from ces_testbed.cluster import Cluster
from ces_testbed.errors import TestbedError
from ces_testbed.hub import HubFiles, places, prepare, region_names
from ces_testbed.hub_keeper import remove_hub, start_hub
from ces_testbed.services import FEDERATION
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, free_port
from ces_testbed.topology import TestbedNode, Topology

STARTING = 2  # regions at a time
HEARD_S, LOOK_S = 60.0, 0.5
IDLE_S = 20.0
LIMIT_S = 240.0  # for jobs that are not over when all are submitted
OFFERS = "ces_region_offers"


@dataclass(frozen=True)
class Question:
    load: Load

    @staticmethod
    def of(**load: Any) -> Question:
        return Question(Load(**load))


def measure(question: Question, progress: Progress) -> Found:
    """A job that does not succeed in time makes it a failure. Raises TestbedError."""
    load = question.load
    with _regions(load.regions) as clusters:
        found = asyncio.run(_drive(clusters, load, progress))
    late = load.jobs - found["states"].get("succeeded", 0)
    failure = f"{late} jobs did not succeed" if late else None
    return Found({"load": asdict(load) | {"offered": load.offered}} | found, failure=failure)


@contextmanager
def _regions(count: int) -> Iterator[dict[str, Cluster]]:
    """Running, without agents, by name; all of it is taken away at the end."""
    unused = Topology(nodes=[TestbedNode(name="unused", cpu=1000, memory=2**30)])
    with ended_tidily(), tempfile.TemporaryDirectory(prefix="ces-bench-") as folder:
        hub_at = HubFiles(Path(folder) / "hub")
        names = region_names(f"b{os.getpid()}x", count)
        hub = prepare(hub_at, "bench", {name: Path(folder) / name for name in names})
        made = {
            name: Cluster(
                ClusterSpec(
                    name=name,
                    topology=unused,
                    api_port=free_port(LOCALHOST, set()),
                    save_context=False,
                    timing=PATIENT,
                    log_level="warning",
                    region=place,
                ),
                Files(Path(folder) / name),
                agents=False,
            )
            for name, place in places(hub_at, hub).items()
        }
        try:
            start_hub(hub_at)
            with ThreadPoolExecutor(STARTING) as threads:
                list(threads.map(Cluster.start, made.values()))
            yield made
        finally:
            with undisturbed():
                left = [what for cluster in made.values() for what in cluster.stop()] + remove_hub(hub_at)
                for what in left:
                    print(f"could not be removed: {what}", file=sys.stderr)


async def _drive(clusters: Mapping[str, Cluster], load: Load, progress: Progress) -> dict[str, Any]:
    """Put the load on the regions, and measure until every job is over."""
    async with AsyncExitStack() as stack:
        https: dict[str, httpx.AsyncClient] = {}
        for number, (name, cluster) in enumerate(clusters.items()):
            https[name] = await stack.enter_async_context(connection(cluster))
            names = [f"r{number + 1}n{node + 1}" for node in range(load.nodes)]
            nodes = [SimulatedNode(each, lambda _: load.run_s, shape=NODE) for each in names]
            await stack.enter_async_context(agents(cluster, https[name], nodes, chord_topology(names), progress))
        await _all_heard(https)
        quiet = await _hub_traffic(clusters)
        await asyncio.sleep(IDLE_S)
        before, start, cpu = await _hub_traffic(clusters), time.monotonic(), _cpu(clusters)
        run = _Run(https, load, progress)
        await run.play()
        seconds, after = time.monotonic() - start, await _hub_traffic(clusters)
        spent = {kind: used - cpu.get(kind, 0.0) for kind, used in _cpu(clusters).items()}
        found = summary(await run.courses())
        return found | {
            "seconds": seconds,
            "hub": {
                "idle_per_s": _rate(quiet, before, IDLE_S),
                "loaded_per_s": _rate(before, after, seconds),
                "per_job_elsewhere": _beyond(quiet, before, after, seconds, found["elsewhere"]),
            },
            "offers": await _offers(clusters),
            "cpu_ms_per_job": {kind: used * 1e3 / load.jobs for kind, used in sorted(spent.items())},
        }


class _Run:
    """The jobs of one load, and the events of every home since the first of them."""

    def __init__(self, https: Mapping[str, httpx.AsyncClient], load: Load, progress: Progress) -> None:
        self._https, self._load = https, load
        self._submitted = counted(progress, "jobs submitted", load.jobs)
        self._is_over = counted(progress, "jobs over", load.jobs)
        self._homes: dict[str, str] = {}  # job -> home
        self._left: set[str] = set()
        self._early: set[str] = set()  # over before their submission was answered
        self._events: list[dict[str, Any]] = []
        self._over = asyncio.Event()

    async def play(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            listening = [tasks.create_task(self._listen(http)) for http in self._https.values()]
            await self._submit()
            with suppress(TimeoutError):
                async with asyncio.timeout(LIMIT_S):
                    while self._left:
                        self._over.clear()
                        await self._over.wait()
            for task in listening:
                task.cancel()

    async def _submit(self) -> None:
        start, homes = time.monotonic(), list(self._https)
        async with asyncio.TaskGroup() as tasks:
            for number, (home, file) in enumerate(jobs(self._load)):
                await asyncio.sleep(max(0.0, start + number / self._load.rate - time.monotonic()))
                tasks.create_task(self._one(homes[home], file))

    async def _one(self, home: str, file: JobFile) -> None:
        answer = await self._https[home].post(
            "/v1/jobs", json=file.model_dump(mode="json"), headers={"Idempotency-Key": file.name}
        )
        answer.raise_for_status()
        job = answer.json()["id"]
        self._homes[job] = home
        self._submitted()
        if job not in self._early:
            self._left.add(job)

    async def _listen(self, http: httpx.AsyncClient) -> None:
        async for event in events_of(http):
            self._events.append(event)
            if event["type"] in OVER:
                self._ended(event["subject"])

    def _ended(self, job: str) -> None:
        """Of jobs of others in this region, too, which change nothing."""
        self._early.add(job)
        if job in self._left:
            self._left.discard(job)
            self._is_over()
            self._over.set()

    async def courses(self) -> list[Ran]:
        moments = moments_of(self._events)
        found = []
        for job, home in self._homes.items():
            answer = await self._https[home].get(f"/v1/jobs/{job}")
            answer.raise_for_status()
            found.append(ran(home, answer.json(), moments))
        return found


async def _all_heard(https: Mapping[str, httpx.AsyncClient]) -> None:
    """Wait until each region may place jobs in every other. Raises TestbedError."""
    until = time.monotonic() + HEARD_S
    for name, http in https.items():
        while True:
            answer = await http.get("/v1/regions")
            states = [each["state"] for each in answer.json().get("items", [])] if answer.is_success else []
            if states.count("ready") == len(https) - 1:
                break
            if time.monotonic() > until:
                raise TestbedError(f"region {name} has not heard of all others within {HEARD_S:g} s: {states}")
            await asyncio.sleep(LOOK_S)


async def _hub_traffic(clusters: Mapping[str, Cluster]) -> dict[str, float]:
    """Messages and bytes that regions' servers have sent to the hub so far, by their own counters."""
    found: Counter[str] = Counter()
    async with httpx.AsyncClient(trust_env=False) as http:
        for cluster in clusters.values():
            url = f"http://{cluster.layout.host}:{cluster.layout.ports.nats_monitor}/leafz"
            for leaf in (await http.get(url)).json()["leafs"]:
                found["messages"] += leaf["out_msgs"]
                found["bytes"] += leaf["out_bytes"]
    return dict(found)


def _rate(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> dict[str, float]:
    return {what: (after[what] - before[what]) / seconds for what in after}


def _beyond(
    quiet: Mapping[str, float], before: Mapping[str, float], after: Mapping[str, float], seconds: float, jobs: int
) -> dict[str, float]:
    """What there was beyond what idle regions would have said in that time, for each of these jobs."""
    idle = _rate(quiet, before, IDLE_S)
    return {what: (after[what] - before[what] - idle[what] * seconds) / max(jobs, 1) for what in after}


async def _offers(clusters: Mapping[str, Cluster]) -> dict[str, int]:
    """What became of the offers of all regions' federation services."""
    found: Counter[str] = Counter()
    async with httpx.AsyncClient(trust_env=False) as http:
        for cluster in clusters.values():
            token = cluster.files.metrics_token.read_text().strip()
            url = f"{cluster.layout.url(FEDERATION)}/metrics"
            answer = await http.get(url, headers={"Authorization": f"Bearer {token}"})
            answer.raise_for_status()
            for family in text_string_to_metric_families(answer.text):
                for sample in family.samples:
                    if sample.name == f"{OFFERS}_total":
                        found[sample.labels["outcome"]] += int(sample.value)
    return dict(found)


def _cpu(clusters: Mapping[str, Cluster]) -> Counter[str]:
    total: Counter[str] = Counter()
    for cluster in clusters.values():
        total.update(cpu_seconds(cluster))
    return total
