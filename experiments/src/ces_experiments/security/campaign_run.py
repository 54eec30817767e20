"""The second part: a stolen credential in a cluster that trains. The rogue node's agent is stopped, and an attacker
goes on with what it had."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.progress import Progress

from ces_client import Client
from ces_client.audit import Inventory
from ces_client.audit_inputs import events_until_now, judge, links_of_file, request_of
from ces_common.messages.api import JobView
from ces_common.natsauth.credentials import read_credentials
from ces_common.natsauth.keys import public_key
from ces_common.natsauth.permissions import SERVICES
from ces_common.states import JOB_OVER, JobState
from ces_experiments.common.console import told
from ces_experiments.common.interruption import ended_tidily
from ces_experiments.control_plane.simulated_cluster import agents, connection
from ces_experiments.security import training
from ces_experiments.security.attack_process import attack
from ces_experiments.security.honest import Window, honest_nodes, kept_free, while_attacked
from ces_experiments.security.question import Question
from ces_experiments.security.target import Target
from ces_experiments.security.training import ROGUE
from ces_experiments.security.watch import differences, look
from ces_testbed.capability import why_no_tc
from ces_testbed.cluster import Cluster
from ces_testbed.errors import TestbedError
from ces_testbed.services import agent_name
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, Timing, free_port

BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
TIMING: Final = Timing(lease_s=30, lease_margin_s=5, unreachable_s=15)
LOOK_S: Final = 0.5
PATIENCE_S: Final = 300.0  # beyond how long something should take


def campaign(question: Question, progress: Progress) -> dict[str, Any]:
    """What the attacker tried, and how everybody else fared. Raises TestbedError."""
    lacks_tc = why_no_tc()
    with ended_tidily(), TemporaryDirectory(prefix="ces-bench-") as folder:
        spec = ClusterSpec(
            name=f"sec{os.getpid()}",
            topology=training.topology(question.workers * len(question.trained)),
            network="none" if lacks_tc else "tc",
            api_port=free_port(LOCALHOST, set()),
            save_context=False,
            timing=TIMING,
            log_level="warning",
        )
        with Cluster(spec, Files(Path(folder) / "cluster")) as cluster, cluster.client() as client:
            found = asyncio.run(_Campaign(cluster, client, question, progress).run())
    return {"network": spec.network, **found}


class _Campaign:
    def __init__(self, cluster: Cluster, client: Client, question: Question, progress: Progress) -> None:
        self._cluster, self._client, self._question, self._progress = cluster, client, question, progress
        self._step = told(progress, 5)

    async def run(self) -> dict[str, Any]:
        question, honest = self._question, honest_nodes(self._question.honest, self._cluster.layout.host)
        network = self._cluster.spec.topology.network
        async with connection(self._cluster) as http, agents(self._cluster, http, honest, network, self._progress):
            await kept_free(http, [ROGUE, *(node.name for node in honest)])
            self._step("the same jobs without an attack")
            alone = await self._submit("alone", dict.fromkeys(question.trained, question.rounds))
            took = {kind: training.seconds_of(view) for kind, view in (await self._over(alone)).items()}
            lasts_s = question.seconds + question.calm_before_s
            jobs = await self._submit(
                "attacked",
                {kind: training.rounds_for(lasts_s, question.rounds, took_s) for kind, took_s in took.items()},
            )
            await self._until(jobs, lambda views: all(map(training.round_of, views)), "every job trains")
            self._step("a while without an attack")
            calm, calm_rounds = await self._during(honest, jobs, asyncio.sleep(question.calm_before_s))
            before = await asyncio.to_thread(look, self._cluster, self._client, ROGUE)
            self._cluster.kill(agent_name(ROGUE), stay_down=True)
            self._step("the attack")
            attacking = asyncio.create_task(attack(await self._target(jobs, [node.name for node in honest])))
            attacked, rounds = await self._during(honest, jobs, attacking)
            after = await asyncio.to_thread(look, self._cluster, self._client, ROGUE)
            self._step("until the jobs are over")
            views = await self._over(jobs)
            self._step("audit")
            verdict = await asyncio.to_thread(self._audit)
        found = attacking.result()
        beats = while_attacked(honest, found.pop("spans"))
        return {
            **found,
            "attacks": [{**row, "heartbeat_ms": beats[row["attack"]]} for row in found["attacks"]],
            "calm": calm,
            "attacked": attacked,
            "training": training.slowdown(calm_rounds, rounds),
            "jobs": {kind: {"state": view.state, "attempt": view.attempt, "restarts": view.restarts}
                     for kind, view in views.items()},
            "audit": [asdict(finding) for finding in verdict.findings],
            "events": verdict.events,
            "changed": [*differences(before, after), *training.complaints(list(views.values()))],
        }  # fmt: skip

    async def _submit(self, name: str, rounds: Mapping[str, int]) -> dict[str, str]:
        """The ids of the jobs, by kind."""
        asked = self._question
        found = {}
        for kind, count in rounds.items():
            job = training.job(kind, asked.workers, asked.hidden, count, name, asked.seed)
            found[kind] = (await asyncio.to_thread(self._client.jobs.submit, job)).id
        return found

    async def _views(self, jobs: Mapping[str, str]) -> dict[str, JobView]:
        return {kind: await asyncio.to_thread(self._client.jobs.get, job) for kind, job in jobs.items()}

    async def _until(self, jobs: Mapping[str, str], condition: Any, what: str) -> dict[str, JobView]:
        """Raises TestbedError."""
        # Rounds take longer where others of the job's workers share a host than where they did before.
        limit_s = 2 * self._question.seconds + PATIENCE_S
        until = time.monotonic() + limit_s
        while True:
            views = await self._views(jobs)
            if condition(views.values()):
                return views
            if time.monotonic() > until:
                states = ", ".join(f"{kind} {view.state}: {view.reason}" for kind, view in views.items())
                raise TestbedError(f"not within {limit_s:g} s: {what} ({states})")
            await asyncio.sleep(LOOK_S)

    async def _over(self, jobs: Mapping[str, str]) -> dict[str, JobView]:
        return await self._until(jobs, lambda views: all(view.state in JOB_OVER for view in views), "all jobs are over")

    async def _during(
        self, honest: Sequence[Any], jobs: Mapping[str, str], work: Any
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """How the honest agents' heartbeats fare while ``work`` is done, and how long each job's rounds take, in
        seconds; of a job that ends meanwhile, until it did."""
        first: dict[str, tuple[float, int]] = {}
        last: dict[str, tuple[float, int]] = {}
        window = Window(honest)
        working = asyncio.ensure_future(work)
        while True:
            for kind, view in (await self._views(jobs)).items():
                if view.state is JobState.RUNNING:
                    last[kind] = time.monotonic(), training.round_of(view)
                    first.setdefault(kind, last[kind])
            if working.done():
                break
            await asyncio.wait([working], timeout=LOOK_S)
        await working
        took = {
            kind: (then - began) / (there - here)
            for kind, ((began, here), (then, there)) in ((kind, (first[kind], last[kind])) for kind in first)
            if there > here
        }
        return window.found(), took

    async def _target(self, jobs: Mapping[str, str], honest: Sequence[str]) -> Target:
        layout = self._cluster.layout
        credentials = read_credentials(self._cluster.files.agent(ROGUE) / "nats.creds")
        views = await self._views(jobs)
        allocations = [
            (task.allocation, view.id, task.name)
            for view in views.values()
            for task in view.placement
            if task.allocation
        ]
        return Target(
            node=ROGUE,
            jwt=credentials.jwt,
            seed=credentials.seed,
            public_key=public_key(credentials.seed),
            nats_url=layout.nats_url,
            api_url=self._cluster.url,
            authority=None if layout.authority is None else layout.authority.read_text(),
            others=["n1", training.SWITCH, *honest[:2], *SERVICES],
            allocations=allocations,
            machine=BOOT.read_text().strip() if BOOT.exists() else "",
            seconds=self._question.seconds,
            chance=str(self._question.seed),
        )

    def _audit(self) -> Any:
        client = self._client
        asked = {job.id: request_of(client.jobs.get(job.id)) for job in client.jobs.list()}
        inventory = Inventory(jobs=asked, **links_of_file(self._cluster.spec.topology.network))
        return judge(events_until_now(client), inventory, finished=True)
