"""The control plane under load: real services, NATS and database; agents simulated below the wire."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import httpx
from rich.progress import Progress

from ces_experiments.common.report import Found
from ces_experiments.common.service_time import cpu_seconds
from ces_experiments.common.spread import milliseconds
from ces_experiments.control_plane.load import (
    Load,
    Moments,
    chord_topology,
    node_names,
    ring_job,
    stages,
    throughput,
    waits,
)
from ces_experiments.control_plane.simulated_agents import SimulatedNode
from ces_experiments.control_plane.simulated_cluster import (
    ALONE,
    Alike,
    agents,
    central_services,
    connection,
    submit,
    until_over,
)
from ces_testbed.cluster import Cluster
from ces_testbed.services import CENTRAL

LIMIT_S = 600.0


@dataclass(frozen=True)
class Question:
    """``database``: its URL; None for SQLite. ``encrypted``: whether API and NATS speak TLS.
    ``trace_ratio``: of the jobs that are traced."""

    load: Load
    database: str | None
    alike: Alike = ALONE
    encrypted: bool = True
    trace_ratio: float = 0.0

    @staticmethod
    def of(
        *, database: str | None, managers: int, schedulers: int, encrypted: bool, trace_ratio: float, **load: Any
    ) -> Question:
        return Question(Load(**load), database, Alike(managers, schedulers), encrypted, trace_ratio)


def measure(question: Question, progress: Progress) -> Found:
    """Start a cluster without agents, and put the load on it."""
    settings = {"CES_TRACE_RATIO": f"{question.trace_ratio:g}"}
    with central_services(
        question.database, alike=question.alike, encrypted=question.encrypted, settings=settings
    ) as cluster:
        found = asyncio.run(drive(cluster, question.load, progress))
    asked = {
        "load": asdict(question.load),
        "alike": asdict(question.alike),
        "database": scheme(question.database),
        "encrypted": question.encrypted,
        "trace_ratio": question.trace_ratio,
    }
    return Found(asked | found)


async def drive(cluster: Cluster, load: Load, progress: Progress) -> dict[str, Any]:
    """Put the load on a started cluster without agents, and measure until every job is over.

    ``messages_per_job``: those that the broker received, heartbeats and their answers left out. ``reached_s``: when
    each job first reached each state, in seconds since the first was submitted.
    """
    names = node_names(load.nodes)
    nodes = [SimulatedNode(name, lambda _: load.run_s) for name in names]
    async with connection(cluster) as http, agents(cluster, http, nodes, chord_topology(names), progress):
        before, started = cpu_seconds(cluster), time.monotonic()
        messages = await _messages(cluster)
        jobs = (ring_job(index, load.tasks, load.seed) for index in range(load.jobs))
        submits = await submit(http, jobs, load.jobs, progress, load.rate)
        events = await until_over(http, load.jobs, progress, LIMIT_S)
        spent, elapsed = cpu_seconds(cluster), time.monotonic() - started
        messages = await _messages(cluster) - messages
        beats = [took_s for node in nodes for _, took_s in node.beats]
    moments = moments_of(events)
    first = min(reached["queued"] for reached in moments.values())
    return {
        "running": len(waits(moments)),
        "succeeded": sum("succeeded" in reached for reached in moments.values()),
        "jobs_per_s": round(throughput(moments), 2),
        "submit_to_running_ms": milliseconds(waits(moments)),
        "api_submit_ms": milliseconds(submits),
        "stages_ms": stages(moments),
        "messages_per_job": round((messages - 2 * len(beats)) / load.jobs, 1),
        "events_per_job": round(len(events) / load.jobs, 1),
        "heartbeats_per_s": round(len(beats) / elapsed, 1),
        "heartbeat_ms": milliseconds(beats),
        "cpu_ms_per_job": {
            name: round((spent[name] - before[name]) * 1000 / load.jobs, 2) for name in CENTRAL if name in before
        },
        "reached_s": [
            {state: (moment - first).total_seconds() for state, moment in reached.items()}
            for reached in moments.values()
        ],
    }


def scheme(database: str | None) -> str:
    """What kind of database it is."""
    return (database or "sqlite").partition(":")[0].partition("+")[0]


def moments_of(events: Iterable[Mapping[str, Any]]) -> Moments:
    """When each job first reached each state, by the event log."""
    moments: dict[str, dict[str, datetime]] = defaultdict(dict)
    for event in events:
        _, _, aggregate, state = event["type"].split(".")
        if aggregate == "job":
            moments[event["subject"]].setdefault(state, datetime.fromisoformat(event["time"]))
    return moments


async def _messages(cluster: Cluster) -> int:
    """Messages that the broker has received from its clients so far."""
    port = cluster.layout.ports.nats_monitor
    async with httpx.AsyncClient(trust_env=False) as http:
        return int((await http.get(f"http://{cluster.layout.host}:{port}/varz")).json()["in_msgs"])
