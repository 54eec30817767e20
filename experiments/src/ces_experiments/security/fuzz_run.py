"""The first part: hostile variants of every message, against the central services and simulated agents."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import httpx
from rich.progress import Progress

from ces_common.messages.api import TopologyFile, TopologyLink
from ces_common.natsauth.keys import public_key
from ces_common.natsauth.permissions import SERVICES
from ces_experiments.control_plane.load import LINK
from ces_experiments.control_plane.simulated_agents import SimulatedNode
from ces_experiments.control_plane.simulated_cluster import agents, central_services, connection, events_of
from ces_experiments.security.attack_process import attack
from ces_experiments.security.honest import EVERY_S, Window, honest_nodes, kept_free
from ces_experiments.security.question import Question
from ces_experiments.security.target import Target
from ces_experiments.security.watch import differences, look
from ces_testbed.cluster import Cluster

ROGUE: Final = "rogue"
FOR_EVER_S: Final = 86400.0
RUNS_S: Final = 120.0  # in which a small job starts
LOOK_S: Final = 0.2
LOG_S: Final = 1.0  # for which one answer is read
BAIT: Final = {
    "name": "bait",
    "tasks": [{"name": "worker", "command": ["true"], "resources": {"cpu": "100m", "memory": "16Mi"}}],
}
"""A job on the rogue's own node, so that it is asked for a log."""


def fuzz(question: Question, progress: Progress) -> dict[str, Any]:
    """What the hostile messages were met with, and what they changed."""
    with central_services() as cluster:
        return asyncio.run(_fuzz(cluster, question, progress))


async def _fuzz(cluster: Cluster, question: Question, progress: Progress) -> dict[str, Any]:
    honest = honest_nodes(question.honest, cluster.layout.host)
    rogue = SimulatedNode(ROGUE, lambda _: FOR_EVER_S, interval_s=EVERY_S)
    topology = TopologyFile(links=[TopologyLink(src=ROGUE, dst=honest[0].name, bandwidth=LINK)])
    statuses: Counter[str] = Counter()
    async with connection(cluster) as http, agents(cluster, http, [*honest, rogue], topology, progress):
        await kept_free(http, [node.name for node in honest])
        job = (await http.post("/v1/jobs", json=BAIT)).raise_for_status().json()["id"]
        await _running(http, job)
        with cluster.client() as client:
            before = await asyncio.to_thread(look, cluster, client, ROGUE)
            window = Window(honest)
            await asyncio.sleep(question.calm_s)
            calm, window = window.found(), Window(honest)
            progress.add_task("hostile messages", total=None)
            async with _asking(cluster, job, honest[0].name, statuses):
                found = await attack(_target(cluster, rogue, honest, question))
            attacked = window.found()
            after = await asyncio.to_thread(look, cluster, client, ROGUE)
    changed = [
        *differences(before, after),
        *(f"the API answered {each}" for each in statuses if each.startswith("500")),
    ]
    return {**found, "asked": dict(statuses), "calm": calm, "attacked": attacked, "changed": changed}


def _target(cluster: Cluster, rogue: SimulatedNode, honest: Sequence[SimulatedNode], question: Question) -> Target:
    authority, credentials = cluster.layout.authority, rogue.credentials
    return Target(
        node=ROGUE,
        jwt=credentials.jwt,
        seed=credentials.seed,
        public_key=public_key(credentials.seed),
        nats_url=cluster.layout.nats_url,
        api_url=cluster.url,
        authority=None if authority is None else authority.read_text(),
        others=[*(node.name for node in honest[:3]), *SERVICES],
        seconds=question.paced_s,
        each=question.each,
        chance=str(question.seed),
    )


async def _running(http: httpx.AsyncClient, job: str) -> None:
    """Raises TimeoutError."""
    async with asyncio.timeout(RUNS_S):
        async for event in events_of(http):
            if event["type"] == "ces.v1.job.running" and event["subject"] == job:
                return


@asynccontextmanager
async def _asking(cluster: Cluster, job: str, peer: str, statuses: Counter[str]) -> AsyncIterator[None]:
    """Have the API ask the rogue, again and again. ``statuses``: counts how it answers then."""
    tls, headers = cluster.layout.tls(), {"Authorization": f"Bearer {cluster.token}"}
    verify = True if tls is None else tls
    # No client that tries again where it is answered 503, as the others here do: that is the right answer.
    async with httpx.AsyncClient(base_url=cluster.url, headers=headers, verify=verify, timeout=60) as http:
        tasks = [asyncio.create_task(each) for each in (_logs(http, job, statuses), _probes(http, peer, statuses))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def _logs(http: httpx.AsyncClient, job: str, statuses: Counter[str]) -> None:
    """Ask for the log that the rogue keeps, again and again: it may answer with what it likes, and never end."""
    while True:
        with suppress(TimeoutError, httpx.TransportError):
            async with asyncio.timeout(LOG_S), http.stream("GET", f"/v1/jobs/{job}/logs") as answer:
                statuses[f"{answer.status_code} to a question for a log"] += 1
                async for _ in answer.aiter_bytes():
                    pass
        await asyncio.sleep(0)


async def _probes(http: httpx.AsyncClient, peer: str, statuses: Counter[str]) -> None:
    """Ask for measurements of the rogue's link. Its peer measures nothing, so that none can succeed: 503 is right."""
    while True:
        with suppress(httpx.TransportError):
            answer = await http.post(f"/v1/links/{ROGUE}/{peer}/probe", json={"seconds": 0.2})
            statuses[f"{answer.status_code} to a question for a measurement"] += 1
        await asyncio.sleep(LOOK_S)
