"""The benchmark of the queue, run: all jobs are submitted at once, and when all are over the log is audited."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from ces_client.audit import Inventory
from ces_client.audit_inputs import events_until_now, judge, links_of_file, request_of
from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile
from ces_experiments.common.report import Found
from ces_experiments.control_plane.experiment import scheme
from ces_experiments.control_plane.load import chord_topology, node_names
from ces_experiments.control_plane.queue.history import fates, longest_queue, seconds, waits
from ces_experiments.control_plane.queue.load import LINK, QueueLoad, job, runs_s
from ces_experiments.control_plane.simulated_agents import SimulatedNode
from ces_experiments.control_plane.simulated_cluster import (
    agents,
    central_services,
    connection,
    cpu_seconds,
    submit,
    until_over,
)
from ces_testbed.cluster import Cluster

LIMIT_S = 1800.0


@dataclass(frozen=True)
class Question:
    """``database``: its URL; None for SQLite. ``parameters``: the file of the queue's parameters."""

    load: QueueLoad
    database: str | None = None
    parameters: Path | None = None

    @staticmethod
    def of(*, database: str | None, parameters: Path | None, **load: Any) -> Question:
        return Question(QueueLoad(**load), database, parameters)


def measure(question: Question, progress: Progress) -> Found:
    """Start a cluster without agents and put the load on it. Jobs that do not come to their end are among the audit's
    findings, and those make it a failure."""
    load = question.load
    jobs = {file.name: file for file in (job(load, index) for index in range(load.jobs))}
    with central_services(question.database, question.parameters) as cluster:
        cpu = asyncio.run(drive(cluster, load, jobs, progress))
        with cluster.client() as client:
            events = list(events_until_now(client))
    asked = {name: request_of(file) for name, file in jobs.items()}
    verdict = judge(events, Inventory(jobs=asked, **links_of_file(_topology(load))), finished=True)
    found, audit = fates(events), verdict.to_dict()
    results = {
        "load": asdict(load),
        "database": scheme(question.database),
        "seconds": seconds(found),
        "states": dict(Counter(fate.state for fate in found)),
        "placed_again": sum(max(fate.plans - 1, 0) for fate in found),
        "longest_queue": longest_queue(found),
        "waits": waits(found, jobs),
        "cpu_s": cpu,
        "audit": audit,
    }
    first = next(iter(audit["findings"]), None)
    many = f"{len(audit['findings'])} findings, first: "
    return Found(results, failure=f"{many}event {first['event']}: {first['text']}" if first else None)


def _topology(load: QueueLoad) -> TopologyFile:
    return chord_topology(node_names(load.nodes), LINK)


async def drive(cluster: Cluster, load: QueueLoad, jobs: Mapping[str, JobFile], progress: Progress) -> dict[str, float]:
    """Put the jobs on a started cluster until all are over, or half an hour has passed. Gives the CPU seconds that each
    central service has used for them."""
    nodes = [SimulatedNode(name, runs_s) for name in node_names(load.nodes)]
    async with connection(cluster) as http, agents(http, nodes, _topology(load), progress):
        before = cpu_seconds(cluster)
        async with asyncio.TaskGroup() as group:
            group.create_task(until_over(http, len(jobs), progress, LIMIT_S))
            await submit(http, jobs.values(), len(jobs), progress)
        return {name: round(used - before.get(name, 0.0), 2) for name, used in cpu_seconds(cluster).items()}
