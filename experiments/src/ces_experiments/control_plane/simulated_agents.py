"""Agents that are real on the wire and nothing below it: they join, beat, hear their documents and report, but start
no worker and shape no link. Many fit in one process, so that a benchmark loads the central services alone."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import httpx

from ces_common import subjects
from ces_common.bus import Credentials, NatsBus
from ces_common.bus.port import BusError
from ces_common.messages.api import JoinAnswer, JoinRequest
from ces_common.messages.base import Message
from ces_common.messages.desired import DesiredCompute, DesiredNetwork, DesiredWorker
from ces_common.messages.reports import Applied, Heartbeat, LeaseGrant, LinkReport, LinkStatus, Status, WorkerStatus
from ces_common.natsauth import SIGNATURE, new_user_key, signature_of
from ces_common.repetition import Repetition

REPEAT_S = 2.0
ASKED_AT_ONCE = 8  # heartbeats that wait for their answers, as with a real agent
FIRST_ANSWER_S = 10.0  # how long one waits before it is known how long leases are; then for a third of one


@dataclass
class SimulatedLease:
    """A node's lease as its agent counts it: from when a heartbeat was sent, on this machine's steady clock.
    ``lapses``: how often it has ended."""

    ends: float = math.inf  # it has not begun before the first grant
    granted: float = -math.inf  # when the newest heartbeat was sent that renewed it
    lasts_s: float = 0.0
    lapses: int = 0
    lapsed: bool = False

    def renew(self, sent: float, lease_s: float) -> None:
        """A heartbeat that was sent then is answered."""
        self.look()
        if sent > self.granted:
            self.granted, self.ends, self.lasts_s, self.lapsed = sent, sent + lease_s, lease_s, False

    def look(self) -> None:
        """To be called often: a real agent would end its workers as soon as the lease has ended."""
        if not self.lapsed and time.monotonic() > self.ends:
            self.lapses, self.lapsed = self.lapses + 1, True


@dataclass
class NodeShape:
    """What a simulated node claims to have: millicores and bytes."""

    cpu: int = 8000
    memory: int = 16 * 2**30


class Beat(NamedTuple):
    """A heartbeat that was answered: when it was sent, on the steady clock, and its round trip, both in seconds."""

    sent: float
    took_s: float


@dataclass
class SimulatedNode:
    """One agent. Its workers run for ``run_s`` and succeed. ``interval_s``: between two heartbeats, and two reports of
    what has not changed. ``peers``: where its links lead; those in ``down`` it reports as down."""

    name: str
    run_s: Callable[[DesiredWorker], float]
    shape: NodeShape = field(default_factory=NodeShape)
    interval_s: float = REPEAT_S
    peers: Sequence[str] = ()
    down: set[str] = field(default_factory=set)
    beats: list[Beat] = field(default_factory=list)
    unanswered: int = 0
    lease: SimulatedLease = field(default_factory=SimulatedLease)

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

    async def connect(self) -> None:
        """Hear of its documents, and read them. Raises BusError."""
        bus = self._joined
        await bus.connect()
        await bus.kv_subscribe(self.name, self._desired)
        for kind in subjects.DESIRED_KINDS:
            document = await bus.request(subjects.fetch(self.name, kind), timeout_s=FIRST_ANSWER_S)
            await self._desired(subjects.desired_key(self.name, kind), document or None)

    @property
    def _joined(self) -> NatsBus:
        assert self._bus is not None, "join first"
        return self._bus

    def forget(self) -> None:
        """Start all counts at zero again."""
        self.beats.clear()
        self.unanswered = self.lease.lapses = 0

    async def run(self) -> None:
        """Work until cancelled, once connected."""
        bus = self._joined
        try:
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

    async def links_changed(self) -> None:
        """Say at once how its links are."""
        if self._bus is not None:
            await self._say_links(self._bus)

    async def _say_links(self, bus: NatsBus) -> None:
        links = [LinkStatus(peer=peer, state="down" if peer in self.down else "up") for peer in self.peers]
        await self._publish(bus, "links", LinkReport(node=self.name, links=links))

    async def _beat(self, bus: NatsBus) -> None:
        """One each interval, also while earlier ones wait for their answers."""
        beat, asked = Heartbeat(node=self.name, boot=self.name).encode(), set[asyncio.Task[None]]()
        async with asyncio.TaskGroup() as asking:
            while True:
                sent = time.monotonic()
                self.lease.look()
                if len(asked) < ASKED_AT_ONCE:
                    task = asking.create_task(self._ask(bus, beat, sent))
                    asked.add(task)
                    task.add_done_callback(asked.discard)
                await asyncio.sleep(max(0.0, self.interval_s - (time.monotonic() - sent)))

    async def _ask(self, bus: NatsBus, beat: bytes, sent: float) -> None:
        lasts_s = self.lease.lasts_s
        patience_s = max(lasts_s / 3, self.interval_s) if lasts_s else FIRST_ANSWER_S
        try:
            answer = await bus.request(subjects.heartbeat(self.name), beat, timeout_s=patience_s)
        except BusError:
            self.unanswered += 1  # a real agent would go on within its lease, too
            return
        self.lease.renew(sent, LeaseGrant.model_validate_json(answer).lease_s)
        self.beats.append(Beat(sent, time.monotonic() - sent))

    async def _report(self, bus: NatsBus) -> None:
        """Every report on every change, at each worker's end, and again as a real agent does."""
        repetition, links = Repetition(self.interval_s), Repetition(self.interval_s)
        while True:
            self._wake.clear()
            now = time.monotonic()
            said = [*self._applied(), *self._status(now)]
            if repetition.due(now, *said):
                for kind, report in said:
                    await self._publish(bus, kind, report)
            if self.peers and links.due(now):
                await self._say_links(bus)
            next_end = min((end - now for end in self._ends.values() if end > now), default=math.inf)
            due = repetition.left_s(now), links.left_s(now) if self.peers else math.inf
            with suppress(TimeoutError):
                async with asyncio.timeout(min(next_end, *due)):
                    await self._wake.wait()
                    repetition.restart()

    def _applied(self) -> list[tuple[subjects.ReportKind, Message]]:
        if self._network is None:
            return []
        generation, jobs = self._network.generation, sorted(self._network.jobs)
        return [("applied", Applied(node=self.name, generation=generation, jobs=jobs))]

    def _status(self, now: float) -> list[tuple[subjects.ReportKind, Message]]:
        if self._compute is None:
            return []
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
        return [("status", Status(node=self.name, generation=self._compute.generation, workers=found))]

    async def _publish(self, bus: NatsBus, kind: subjects.ReportKind, report: Message) -> None:
        with suppress(BusError):  # each is repeated
            await bus.publish(subjects.report(self.name, kind), report.encode())
