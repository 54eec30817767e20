"""Agents that are real on the wire and nothing below it: they join, beat, hear their documents and report, but start
no worker and shape no link. Thousands fit in one process, so that a benchmark loads the central services alone."""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import httpx

from ces_common import subjects
from ces_common.bus import Credentials
from ces_common.bus.port import BusError
from ces_common.messages.base import Message
from ces_common.messages.desired import DesiredCompute, DesiredNetwork, DesiredWorker
from ces_common.messages.membership import JoinAnswer, JoinRequest
from ces_common.messages.reports import Applied, Heartbeat, LeaseGrant, LinkReport, LinkStatus, Status, WorkerStatus
from ces_common.messages.traces import AGENT, MAX_BATCH, Span, SpanBatch
from ces_common.natsauth import SIGNATURE, new_user_key, signature_of
from ces_common.repetition import Repetition
from ces_common.tls.pins import secret_of
from ces_common.trace_shipping import GATHER_S
from ces_common.tracing import span
from ces_experiments.control_plane.wire import Wire

REPEAT_S = 2.0
ASKED_AT_ONCE = 8  # heartbeats that wait for their answers, as with a real agent
FIRST_ANSWER_S = 10.0  # how long one waits before it is known how long leases are; then for a third of one
DOCUMENT_S = 30.0

Beat = tuple[float, float]  # when a heartbeat was sent, on the steady clock, and how long its answer took; seconds


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


@dataclass
class SimulatedNode:
    """One agent. Its workers run for ``run_s`` and succeed. ``interval_s``: between two heartbeats, and two reports of
    what has not changed. ``peers``: where its links lead; those in ``down`` it reports as down. ``beats_with``: its
    heartbeats one after the other, without end; always the same one if left out."""

    name: str
    run_s: Callable[[DesiredWorker], float]
    shape: NodeShape = field(default_factory=NodeShape)
    interval_s: float = REPEAT_S
    peers: Sequence[str] = ()
    down: set[str] = field(default_factory=set)
    host_address: str = "127.0.0.1"
    labels: Mapping[str, str] = field(default_factory=dict)
    beats_with: Iterator[Heartbeat] | None = None
    beats: list[Beat] = field(default_factory=list)
    unanswered: int = 0
    lease: SimulatedLease = field(default_factory=SimulatedLease)

    def __post_init__(self) -> None:
        same = Heartbeat(node=self.name, boot=self.name).encode()
        self._heartbeats = repeat(same) if self.beats_with is None else (each.encode() for each in self.beats_with)
        self._network: DesiredNetwork | None = None
        self._compute: DesiredCompute | None = None
        self._started: dict[str, float] = {}  # worker key -> when it started
        self._ends: dict[str, float] = {}
        self._asked: dict[str, float] = {}  # number of a heartbeat without an answer yet -> when it was sent
        self._said, self._said_links = Repetition(self.interval_s), Repetition(self.interval_s)
        self._joined: tuple[str, Credentials] | None = None
        self._wire: Wire | None = None
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}  # what comes next of each
        self._spans: list[Span] = []  # that wait to be told

    async def join(self, http: httpx.AsyncClient, token: str) -> None:
        """Become part of the cluster with a one-time token. Raises httpx.HTTPStatusError when refused."""
        key = new_user_key()
        request = JoinRequest(
            token=secret_of(token), name=self.name, public_key=key.public, cpu=self.shape.cpu, memory=self.shape.memory,
            arch="simulated", network="tc", host_address=self.host_address, labels=dict(self.labels),
        )  # fmt: skip
        body = request.model_dump_json().encode()
        headers = {"Content-Type": "application/json", SIGNATURE: signature_of(key.seed, "join", body)}
        answer = await http.post("/v1/nodes/join", content=body, headers=headers)
        answer.raise_for_status()
        joined = JoinAnswer.model_validate_json(answer.content)
        self._joined = joined.nats_urls[0], Credentials(joined.jwt, key.seed)

    @property
    def credentials(self) -> Credentials:
        """With which it speaks to the broker, once it has joined."""
        assert self._joined is not None, "join first"
        return self._joined[1]

    async def connect(self, tls: ssl.SSLContext | None) -> None:
        """Hear of its documents, and read them. ``tls``: what the broker is checked by. Raises BusError."""
        assert self._joined is not None, "join first"
        url, credentials = self._joined
        self._wire = wire = await Wire.open(url, self.name, credentials, tls)
        wire.subscribe(subjects.desired_changes(self.name), self._changed)
        for kind in subjects.DESIRED_KINDS:
            document = await wire.request(subjects.fetch(self.name, kind), DOCUMENT_S)
            self._desired(subjects.desired_key(self.name, kind), document)

    @property
    def _connected(self) -> Wire:
        assert self._wire is not None, "connect first"
        return self._wire

    def forget(self) -> None:
        """Start all counts at zero again."""
        self.beats.clear()
        self.unanswered = self.lease.lapses = 0

    async def run(self) -> None:
        """Work until cancelled, once connected. Raises BusUnavailable where the broker ends the connection."""
        try:
            self._beat()
            self._report()
            await self._connected.lost
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
            self._connected.close()

    def _next(self, step: Callable[[], None], wait_s: float) -> None:
        """One timer for each step: an agent that waits is no task, of which there would be tens of thousands."""
        if step in self._timers:
            self._timers[step].cancel()
        self._timers[step] = asyncio.get_running_loop().call_later(wait_s, step)

    def _changed(self, subject: str, document: bytes) -> None:
        self._desired(subjects.parse_desired_change(subject), document)
        if self._report in self._timers:  # it works already
            self._said.restart()
            self._next(self._report, 0.0)

    def _desired(self, key: str, document: bytes) -> None:
        """An empty document is none."""
        if not document:
            return
        if key.endswith(".network"):
            network = DesiredNetwork.model_validate_json(document)
            if self._network is None or network.generation > self._network.generation:
                self._network = network
                self._tell_spans("apply network", network.traces or {}, list(network.traces or {}))
        else:
            compute = DesiredCompute.model_validate_json(document)
            if self._compute is None or compute.generation > self._compute.generation:
                self._take(compute)

    def _take(self, compute: DesiredCompute) -> None:
        now = time.monotonic()
        desired = {worker.key: worker for worker in compute.workers}
        for key in self._started.keys() - desired.keys():
            del self._started[key], self._ends[key]
        begun = desired.keys() - self._started.keys()
        keys = [f"{desired[key].job}.{desired[key].attempt}" for key in begun]
        self._tell_spans("start worker", compute.traces or {}, keys)
        for key in begun:
            self._started[key] = now
            self._ends[key] = now + self.run_s(desired[key])
        self._compute = compute

    def _tell_spans(self, name: str, contexts: Mapping[str, str], keys: Sequence[str]) -> None:
        """What it did at once for traced attempts, by their keys."""
        for job, _, attempt in (key.rpartition(".") for key in keys if key in contexts):
            self._spans.append(span(name, contexts[f"{job}.{attempt}"], job=job, attempt=int(attempt)).finished())
        if self._spans and self._send_spans not in self._timers:
            self._next(self._send_spans, GATHER_S)

    def _send_spans(self) -> None:
        del self._timers[self._send_spans]
        batch, self._spans = SpanBatch(service=AGENT, spans=self._spans[:MAX_BATCH]), []
        self._connected.ask(subjects.spans(self.name), batch.encode(), DOCUMENT_S, lambda _: None)

    def links_changed(self) -> None:
        """Say at once how its links are."""
        links = [LinkStatus(peer=peer, state="down" if peer in self.down else "up") for peer in self.peers]
        self._publish("links", LinkReport(node=self.name, links=links))

    def _beat(self) -> None:
        """One each interval, also while earlier ones wait for their answers."""
        sent = time.monotonic()
        self._next(self._beat, self.interval_s)
        self.lease.look()
        patience_s = max(self.lease.lasts_s / 3, self.interval_s) if self.lease.lasts_s else FIRST_ANSWER_S
        for number in [number for number, asked in self._asked.items() if sent - asked > patience_s]:
            self._connected.give_up(number)
            self._unanswered(number)
        if len(self._asked) >= ASKED_AT_ONCE:
            return

        def answered(answer: bytes | BusError) -> None:
            if isinstance(answer, bytes):
                self._answered(number, answer)
            else:
                self._unanswered(number)

        number = self._connected.ask(subjects.heartbeat(self.name), next(self._heartbeats), patience_s, answered)
        self._asked[number] = sent

    def _answered(self, number: str, answer: bytes) -> None:
        sent = self._asked.pop(number)
        self.lease.renew(sent, LeaseGrant.model_validate_json(answer).lease_s)
        self.beats.append((sent, time.monotonic() - sent))

    def _unanswered(self, number: str) -> None:
        """A real agent would go on within its lease, too."""
        del self._asked[number]
        self.unanswered += 1

    def _report(self) -> None:
        """Every report on every change, at each worker's end, and again as a real agent does."""
        now = time.monotonic()
        said = [*self._applied(), *self._status(now)]
        if self._said.due(now, *said):
            for kind, report in said:
                self._publish(kind, report)
        if self.peers and self._said_links.due(now):
            self.links_changed()
        next_end = min((end - now for end in self._ends.values() if end > now), default=math.inf)
        links_s = self._said_links.left_s(now) if self.peers else math.inf
        self._next(self._report, min(next_end, self._said.left_s(now), links_s))

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

    def _publish(self, kind: subjects.ReportKind, report: Message) -> None:
        self._connected.publish(subjects.report(self.name, kind), report.encode())
