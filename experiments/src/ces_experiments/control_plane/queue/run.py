"""The benchmark of the queue, run: jobs are submitted, services killed, and when all is over the log is audited."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from ces_client.audit import Inventory
from ces_client.audit_inputs import events_until_now, judge, links_of_file, request_of
from ces_client.errors import Unreachable
from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile
from ces_experiments.common.report import Found
from ces_experiments.common.service_time import cpu_seconds
from ces_experiments.control_plane.experiment import scheme
from ces_experiments.control_plane.kills import Kills
from ces_experiments.control_plane.load import chord_topology, node_names
from ces_experiments.control_plane.queue.answers import Proposal, VictimSets, unanswered, victim_sets
from ces_experiments.control_plane.queue.history import fates, longest_queue, seconds, waits
from ces_experiments.control_plane.queue.load import LINK, QueueLoad, job, runs_s
from ces_experiments.control_plane.queue.proposals import proposals
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

LIMIT_S = 3 * 3600.0
ANSWER_S = 90.0  # beyond the time after which what a killed manager has not acknowledged is delivered again


@dataclass(frozen=True)
class Question:
    """``database``: its URL; None for SQLite. ``parameters``: the file of the queue's parameters. ``kills``: seconds
    between two kills of a central service; 0: none."""

    load: QueueLoad
    database: str | None = None
    parameters: Path | None = None
    alike: Alike = ALONE
    kills: float = 0.0

    @staticmethod
    def of(
        *, database: str | None, parameters: Path | None, managers: int, schedulers: int, kills: float, **load: Any
    ) -> Question:
        return Question(QueueLoad(**load), database, parameters, Alike(managers, schedulers), kills)


@dataclass(frozen=True)
class Driven:
    """``events``: the whole log. ``killed``: how often, by service. ``cpu_s``: by kind of service; empty where some
    were killed, since what those have used is not known."""

    events: list[dict[str, Any]]
    proposals: Collection[Proposal]
    killed: Mapping[str, int]
    cpu_s: Mapping[str, float]


def measure(question: Question, progress: Progress) -> Found:
    """Start a cluster without agents and put the load on it. Jobs that do not come to their end are among the audit's
    findings. Those make it a failure, and so do a proposal without an answer and a second set of victims."""
    load = question.load
    jobs = {file.name: file for file in (job(load, index) for index in range(load.jobs))}
    with central_services(question.database, question.parameters, alike=question.alike) as cluster:
        driven = asyncio.run(drive(cluster, load, jobs, progress, question.kills))
    events = driven.events
    asked = {name: request_of(file) for name, file in jobs.items()}
    verdict = judge(events, Inventory(jobs=asked, **links_of_file(_topology(load))), finished=True)
    found, audit = fates(events), verdict.to_dict()
    lost, sets = unanswered(driven.proposals, events), victim_sets(events)
    results = {
        "load": asdict(load),
        "alike": asdict(question.alike),
        "kills": dict(driven.killed),
        "proposals": dict(Counter(each.kind for each in driven.proposals)),
        "answers_lost": lost,
        "victims": {"sets": sets.sets, "jobs": sets.victims, "sets_at_one_time": sets.most},
        "database": scheme(question.database),
        "seconds": seconds(found),
        "states": dict(Counter(fate.state for fate in found)),
        "placed_again": sum(max(fate.plans - 1, 0) for fate in found),
        "longest_queue": longest_queue(found),
        "waits": waits(found, jobs),
        "cpu_s": driven.cpu_s,
        "audit": audit,
    }
    return Found(results, failure=failure_of(audit["findings"], lost, sets))


def failure_of(findings: Sequence[Mapping[str, Any]], lost: Sequence[str], sets: VictimSets) -> str | None:
    """What is wrong, in words. Pure."""
    if findings:
        first = findings[0]
        return f"{len(findings)} findings, first: event {first['event']}: {first['text']}"
    if lost:
        return f"{len(lost)} proposals without an answer, first: {lost[0]}"
    return "two sets of jobs were told at one time to make room for one" if sets.most > 1 else None


def _topology(load: QueueLoad) -> TopologyFile:
    return chord_topology(node_names(load.nodes), LINK)


async def drive(
    cluster: Cluster, load: QueueLoad, jobs: Mapping[str, JobFile], progress: Progress, kills: float = 0.0
) -> Driven:
    """Put the jobs on a started cluster until all are over, or the time is up. ``kills``: see Question."""
    nodes = [SimulatedNode(name, runs_s) for name in node_names(load.nodes)]
    killer = Kills(cluster, kills, load.seed)
    async with (
        connection(cluster) as http,
        agents(cluster, http, nodes, _topology(load), progress),
        proposals(cluster) as proposed,
    ):
        before = cpu_seconds(cluster)
        async with asyncio.TaskGroup() as group:
            killing = group.create_task(killer.run()) if kills else None
            submitting = group.create_task(submit(http, jobs.values(), len(jobs), progress, load.rate))
            await until_over(http, len(jobs), progress, LIMIT_S)
            for task in (killing, submitting):
                if task is not None:
                    task.cancel()
        used = {name: round(used - before.get(name, 0.0), 2) for name, used in cpu_seconds(cluster).items()}
        events = await _all_answered(cluster, proposed)
    return Driven(events, list(proposed.values()), killer.count, {} if kills else used)


async def _all_answered(cluster: Cluster, proposed: Mapping[str, Proposal]) -> list[dict[str, Any]]:
    """The log once every proposal has its answer, or none comes any more. One that a killed manager was at work on is
    delivered again."""
    until = time.monotonic() + ANSWER_S

    def log() -> list[dict[str, Any]]:
        with cluster.client() as client:
            return [dict(event) for event in events_until_now(client)]

    while True:
        over = time.monotonic() > until
        try:
            events = await asyncio.to_thread(log)
            if over or not unanswered(list(proposed.values()), events):
                return events
        except Unreachable:  # the manager that is asked was killed last, and is on its way
            if over:
                raise
        await asyncio.sleep(1)
