"""Agents that are real on the wire and nothing below it: they join, beat, hear their documents and report, but start
no worker and shape no link. Many fit in one process, so that a benchmark loads the central services alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from ces_common import subjects
from ces_common.bus import Credentials, NatsBus
from ces_common.bus.port import BusError
from ces_common.messages.api import JoinAnswer, JoinRequest
from ces_common.messages.desired import DesiredCompute, DesiredNetwork, DesiredWorker
from ces_common.messages.reports import Applied, Heartbeat, LeaseGrant, Status, WorkerStatus
from ces_common.natsauth import SIGNATURE, new_user_key, signature_of

REPEAT_S = 2.0


@dataclass
class NodeShape:
    """What a simulated node claims to have: millicores and bytes."""

    cpu: int = 8000
    memory: int = 16 * 2**30


@dataclass
class SimulatedNode:
    """One agent. Its workers run for ``run_s`` and succeed."""

    name: str
    run_s: Callable[[DesiredWorker], float]
    shape: NodeShape = field(default_factory=NodeShape)
    beats: list[float] = field(default_factory=list)  # round trips of heartbeats, seconds

    def __post_init__(self) -> None:
        self._network: DesiredNetwork | None = None
        self._compute: DesiredCompute | None = None
        self._started: dict[str, float] = {}  # worker key -> when it started
        self._ends: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._bus: NatsBus | None = None

    async def join(self, http: httpx.AsyncClient, token: str) -> None:
        """Become part of the cluster with a one-time token. Raises httpx.HTTPStatusError when refused."""
        key = new_user_key()
        request = JoinRequest(
            token=token, name=self.name, public_key=key.public, cpu=self.shape.cpu, memory=self.shape.memory,
            arch="simulated", network="tc",
        )  # fmt: skip
        body = request.model_dump_json().encode()
        headers = {"Content-Type": "application/json", SIGNATURE: signature_of(key.seed, "join", body)}
        answer = await http.post("/v1/nodes/join", content=body, headers=headers)
        answer.raise_for_status()
        joined = JoinAnswer.model_validate_json(answer.content)
        self._bus = NatsBus(joined.nats_urls, name=self.name, credentials=Credentials(joined.jwt, key.seed))

    async def run(self) -> None:
        """Work until cancelled."""
        assert self._bus is not None, "join first"
        bus = self._bus
        await bus.connect()
        try:
            await bus.kv_subscribe(self.name, self._desired)
            for kind in subjects.DESIRED_KINDS:
                document = await bus.request(subjects.fetch(self.name, kind))
                await self._desired(subjects.desired_key(self.name, kind), document or None)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._beat(bus))
                tasks.create_task(self._report(bus))
        finally:
            await bus.close()

    async def _desired(self, key: str, data: bytes | None) -> None:
        if data is None:
            return
        if key.endswith(".network"):
            network = DesiredNetwork.model_validate_json(data)
            if self._network is None or network.generation > self._network.generation:
                self._network = network
        else:
            compute = DesiredCompute.model_validate_json(data)
            if self._compute is None or compute.generation > self._compute.generation:
                self._take(compute)
        self._wake.set()

    def _take(self, compute: DesiredCompute) -> None:
        now = time.monotonic()
        desired = {worker.key: worker for worker in compute.workers}
        for key in self._started.keys() - desired.keys():
            del self._started[key], self._ends[key]
        for key in desired.keys() - self._started.keys():
            self._started[key] = now
            self._ends[key] = now + self.run_s(desired[key])
        self._compute = compute

    async def _beat(self, bus: NatsBus) -> None:
        beat = Heartbeat(node=self.name, boot=self.name).encode()
        while True:
            sent = time.monotonic()
            try:
                LeaseGrant.model_validate_json(await bus.request(subjects.heartbeat(self.name), beat))
                self.beats.append(time.monotonic() - sent)
            except BusError:
                pass  # a real agent would go on within its lease, too
            await asyncio.sleep(max(0.0, REPEAT_S - (time.monotonic() - sent)))

    async def _report(self, bus: NatsBus) -> None:
        """Both reports on every change, at each worker's end, and again every two seconds."""
        while True:
            self._wake.clear()
            if self._network is not None:
                applied = Applied(node=self.name, generation=self._network.generation, jobs=sorted(self._network.jobs))
                await bus.publish(subjects.report(self.name, "applied"), applied.encode())
            if self._compute is not None:
                status = Status(node=self.name, generation=self._compute.generation, workers=self._workers())
                await bus.publish(subjects.report(self.name, "status"), status.encode())
            now = time.monotonic()
            next_end = min((end - now for end in self._ends.values() if end > now), default=REPEAT_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(next_end, REPEAT_S)):
                    await self._wake.wait()

    def _workers(self) -> list[WorkerStatus]:
        assert self._compute is not None
        now = time.monotonic()
        found = []
        for worker in self._compute.workers:
            over = self._ends[worker.key] <= now
            found.append(
                WorkerStatus(
                    allocation=worker.allocation,
                    incarnation=worker.incarnation,
                    state="exited" if over else "running",
                    exit_code=0 if over else None,
                )
            )
        return found
