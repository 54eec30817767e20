"""The benchmark of a fleet, run: its nodes hold their leases while all befalls it that can."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

import httpx
import psutil
from rich.progress import Progress

from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.service_time import cpu_seconds
from ces_experiments.common.spread import milliseconds
from ces_experiments.control_plane.experiment import moments_of, scheme
from ces_experiments.control_plane.fleet.load import Fleet, flapping, peers_of, site_topology
from ces_experiments.control_plane.load import node_names, ring_job, waits
from ces_experiments.control_plane.simulated_agents import SimulatedNode
from ces_experiments.control_plane.simulated_cluster import (
    OVER,
    agents,
    central_services,
    connection,
    events_of,
    submit,
)
from ces_testbed.cluster import Cluster
from ces_testbed.services import CENTRAL, MANAGER
from ces_testbed.spec import Timing

LOOK_S, SHORT_S = 1.0, 0.05
BIN_S = 5.0  # of the curves over time
LIMIT_S = 300.0  # for jobs that are not over when the time is
MARGIN_S = 10.0


@dataclass(frozen=True)
class Question:
    """``database``: its URL; None for SQLite. ``encrypted``: whether API and NATS speak TLS."""

    fleet: Fleet
    database: str | None = None
    encrypted: bool = True

    @staticmethod
    def of(*, database: str | None, encrypted: bool, **fleet: Any) -> Question:
        return Question(Fleet(**fleet), database, encrypted)


def measure(question: Question, progress: Progress) -> Found:
    """Start a cluster without agents and have the fleet join it. A lease that ends, or a job that does not succeed,
    makes it a failure."""
    fleet = question.fleet
    timing = Timing(lease_s=fleet.lease_s, lease_margin_s=MARGIN_S, unreachable_s=fleet.lease_s * 2 / 3)
    with central_services(question.database, timing=timing, encrypted=question.encrypted) as cluster:
        found = asyncio.run(_Run(cluster, fleet, progress).results())
    results = {"fleet": asdict(fleet), "database": scheme(question.database), "encrypted": question.encrypted} | found
    return Found(results, raw={"heartbeats.csv": found["over_time"]}, failure=_failure(results))


def _failure(found: Mapping[str, Any]) -> str | None:
    wrong = []
    if found["lapses"]:
        wrong.append(f"{found['lapses']} leases ended")
    if found["unreachable"]:
        wrong.append(f"{found['unreachable']} times a node counted as unreachable")
    if (late := found["fleet"]["jobs"] - found["states"].get("succeeded", 0)) > 0:
        wrong.append(f"{late} jobs did not succeed")
    return "; ".join(wrong) or None


@dataclass
class _Run:
    cluster: Cluster
    fleet: Fleet
    progress: Progress
    memory: Counter[str] = field(default_factory=Counter)  # bytes, at their most
    flaps: int = 0
    recovered_s: float | None = None  # from the manager's going on until every node had its lease renewed
    events: list[dict[str, Any]] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)  # once all jobs are

    async def results(self) -> dict[str, Any]:
        """Everything that was measured, from the moment when all nodes were ready."""
        fleet, names = self.fleet, node_names(self.fleet.nodes)
        topology = site_topology(names)
        peers = peers_of(topology)
        nodes = {
            name: SimulatedNode(name, lambda _: fleet.run_s, interval_s=fleet.interval_s, peers=peers[name])
            for name in names
        }
        async with (
            connection(self.cluster) as http,
            agents(self.cluster, http, list(nodes.values()), topology, self.progress),
        ):
            self.start, before, own = time.monotonic(), cpu_seconds(self.cluster), time.process_time()
            wires = flapping(names, topology, fleet.seed)
            async with asyncio.TaskGroup() as tasks:
                beside = [
                    tasks.create_task(work) for work in (self._follow(http), self._watch(), self._flap(nodes, wires))
                ]
                took = await self._burst(http)
                await self._stall(list(nodes.values()))
                await self._until(fleet.lasts_s)
                await self._until_over()
                for task in beside:
                    task.cancel()
            seconds = time.monotonic() - self.start
            spent, own = cpu_seconds(self.cluster), time.process_time() - own
            return self._found(list(nodes.values()), took, seconds) | {
                "cores": {name: (spent[name] - before[name]) / seconds for name in CENTRAL if name in before}
                | {"simulated agents": own / seconds}
            }

    def _found(self, nodes: list[SimulatedNode], took: list[float], seconds: float) -> dict[str, Any]:
        moments = moments_of(event for event in self.events if _kind(event)[0] == "job")
        beats = sorted((sent - self.start, took_s) for node in nodes for sent, took_s in node.beats)
        return {
            "seconds": seconds,
            "heartbeats": len(beats),
            "heartbeats_per_s": len(beats) / seconds,
            "heartbeat_ms": milliseconds(took_s for _, took_s in beats),
            "unanswered": sum(node.unanswered for node in nodes),
            "lapses": sum(node.lease.lapses for node in nodes),
            "unreachable": sum(_kind(event) == ("node", "unreachable") for event in self.events),
            "flaps": self.flaps,
            "links_changed": sum(_kind(event)[0] == "link" for event in self.events),
            "recovered_s": self.recovered_s,
            "states": dict(Counter(_last_states(self.events).values())),
            "plans": sum(_kind(event) == ("job", "planned") for event in self.events),
            "api_submit_ms": milliseconds(took),
            "submit_to_running_ms": milliseconds(waits(moments)),
            "memory_bytes": dict(self.memory),
            "over_time": list(_over_time(beats)),
        }

    async def _until(self, moment_s: float) -> None:
        await asyncio.sleep(max(0.0, self.start + moment_s - time.monotonic()))

    async def _burst(self, http: httpx.AsyncClient) -> list[float]:
        fleet = self.fleet
        await self._until(fleet.burst_s)
        jobs = (ring_job(index, fleet.tasks, fleet.seed) for index in range(fleet.jobs))
        return await submit(http, jobs, fleet.jobs, self.progress)

    async def _stall(self, nodes: list[SimulatedNode]) -> None:
        """Stop the manager, and see how long all take to recover."""
        if not self.fleet.stalled_s:
            return
        await self._until(self.fleet.stall_s)
        manager = psutil.Process(self.cluster.supervisor.pid(MANAGER))
        manager.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(self.fleet.stalled_s)
        finally:
            manager.send_signal(signal.SIGCONT)
        ended = time.monotonic()
        while time.monotonic() < ended + LIMIT_S:
            if all(node.lease.granted >= ended for node in nodes):
                self.recovered_s = time.monotonic() - ended
                return
            await asyncio.sleep(SHORT_S)

    async def _flap(self, nodes: Mapping[str, SimulatedNode], wires: Iterator[tuple[str, str]]) -> None:
        if not self.fleet.flap_s:
            return
        while True:
            await asyncio.sleep(self.fleet.flap_s - self.fleet.down_s)
            [(one, other)] = islice(wires, 1)
            ends = [(nodes[one], other), (nodes[other], one)]
            for node, peer in ends:
                node.down.add(peer)
                node.links_changed()
            await asyncio.sleep(self.fleet.down_s)
            for node, peer in ends:
                node.down.discard(peer)
                node.links_changed()
            self.flaps += 1

    async def _watch(self) -> None:
        """How much memory the services take."""
        bar, told = self.progress.add_task("seconds", total=self.fleet.lasts_s), 0.0
        while True:
            for name in CENTRAL:
                with suppress(psutil.Error):
                    used = psutil.Process(self.cluster.supervisor.pid(name)).memory_info().rss
                    self.memory[name] = max(self.memory[name], used)
            now = time.monotonic() - self.start
            self.progress.update(bar, advance=min(now, self.fleet.lasts_s) - told)
            told = min(now, self.fleet.lasts_s)
            await asyncio.sleep(LOOK_S)

    async def _follow(self, http: httpx.AsyncClient) -> None:
        over, left = counted(self.progress, "jobs over", self.fleet.jobs), self.fleet.jobs
        async with aclosing(events_of(http)) as log:
            async for event in log:
                self.events.append(event)
                if event["type"] in OVER:
                    over()
                    left -= 1
                if not left:
                    self.over.set()

    async def _until_over(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_S):
                await self.over.wait()


def _kind(event: Mapping[str, Any]) -> tuple[str, str]:
    _, _, aggregate, what = event["type"].split(".")
    return aggregate, what


def _last_states(events: list[dict[str, Any]]) -> dict[str, str]:
    return {
        event["data"]["job"]: what
        for event in events
        if (kind := _kind(event))[0] == "job" and (what := kind[1]) != "waiting"
    }


def _over_time(beats: list[tuple[float, float]]) -> Iterator[dict[str, float]]:
    """Round trips of the heartbeats sent within each few seconds."""
    bins: dict[int, list[float]] = {}
    for sent, took_s in beats:
        bins.setdefault(int(sent // BIN_S), []).append(took_s)
    for index, took in sorted(bins.items()):
        yield {"seconds": index * BIN_S} | milliseconds(took)
