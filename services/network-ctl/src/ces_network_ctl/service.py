"""Follow the state, keep the nodes' network documents as it demands, and say when a job's network is in place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Set
from datetime import UTC, datetime
from itertools import islice
from time import monotonic

import structlog
from prometheus_client import Counter

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, Message
from ces_common.messages.desired import DesiredNetwork
from ces_common.messages.events import NetworkPreparing, NetworkReady, new_event
from ces_common.messages.records import JobRecord
from ces_common.messages.reports import Applied
from ces_common.sign_of_life import SignOfLife
from ces_common.spec_store import SpecStore
from ces_common.state_reader import StateReader
from ces_common.state_view import StateView
from ces_common.states import JOB_OVER, JobState
from ces_network_ctl.best_effort import best_effort_only
from ces_network_ctl.desired_network import Planner
from ces_network_ctl.job_network import involved_nodes

log = structlog.get_logger()
SERVICE = "network-ctl"
EVENTS = [  # what may change a node's network: plans come and are revised, jobs leave, workers are gone
    subjects.events("plan", "committed"),
    subjects.events("plan", "revised"),
    *(subjects.events("job", state) for state in ("queued", *JOB_OVER)),
    *(subjects.events("allocation", state) for state in ("stopped", "lost")),
    subjects.events("node"),
    subjects.events("topology"),
    subjects.events("link"),
]
DOCUMENTS = Counter("ces_desired_network_written_total", "Network documents written")
RETRY_S = 1.0
PREPARING_S = 1.0
ON_THE_WAY_S = 10.0  # as long a job waits for nodes that only its best-effort traffic crosses
MAX_PROBLEM, SHOWN = 300, 5  # characters of what is wrong with a report, and jobs of which it is said
REPEAT_S = 15.0  # an announcement about a job that still waits is repeated after this: the manager may be busy

Clock = Callable[[], float]  # seconds, steady


def ready_jobs(
    jobs: list[JobRecord], applied: Mapping[str, Applied], on_the_way: Callable[[JobRecord], Set[str]]
) -> list[JobRecord]:
    """The jobs that wait for their network although every node has its share of it in place. ``on_the_way``: the nodes
    that a job's best-effort traffic crosses and that can be reached now. Pure."""
    return [
        job
        for job in jobs
        if job.state in (JobState.PLANNED, JobState.PREPARING)
        and job.allocations
        and all(node in applied and job.key in applied[node].jobs for node in involved_nodes(job) | on_the_way(job))
    ]


class NetworkController:
    """``reserve``: False for a network that promises nothing to any flow."""

    def __init__(self, bus: Bus, resync_s: float, clock: Clock = monotonic, *, reserve: bool = True) -> None:
        self._bus, self._resync_s, self._clock, self._reserve = bus, resync_s, clock, reserve
        self.reader = StateReader(bus)
        self._store = SpecStore(
            bus, "network", DesiredNetwork, lambda node: subjects.desired_key(node, "network"), resync_s
        )
        self._planner = Planner()
        self._sign_of_life = SignOfLife(bus, SERVICE)
        self._applied: dict[str, Applied] = {}
        self._seen: dict[str, float] = {}  # attempt -> when it was first seen without its network
        self._announced: dict[tuple[str, str], float] = {}  # attempt and kind of event -> when
        bus.on_reconnect(self._reconnected)

    def missing(self) -> str | None:
        """What keeps it from working; None when ready."""
        return None if self.reader.fresh else "the manager's snapshot"

    async def run(self) -> None:
        await self._bus.subscribe(subjects.reports("applied"), self._report)
        await self.reader.start(EVENTS)
        await asyncio.gather(self._follow(), self._sign_of_life.run())

    async def _follow(self) -> None:
        wait_s = self._resync_s
        while True:
            await self.reader.wait(wait_s)
            wait_s = await self.step()

    async def step(self) -> float:
        """One look at the state and what follows from it; returns after how many seconds to look again unasked."""
        self._sign_of_life.begin()
        if not await self.reader.refresh():
            return RETRY_S
        view = self.reader.view
        waiting = [job for job in view.jobs.values() if job.state in (JobState.PLANNED, JobState.PREPARING)]
        keys = {job.key for job in waiting}
        self._seen = {key: since for key, since in self._seen.items() if key in keys}
        self._announced = {key: when for key, when in self._announced.items() if key[0] in keys}
        self._applied = {node: applied for node, applied in self._applied.items() if node in view.nodes}
        documents = await asyncio.to_thread(self._documents, view)  # only refresh() changes the view
        try:
            DOCUMENTS.inc(len(await self._store.put(documents, view.version)))
            ready = {job.id for job in ready_jobs(waiting, self._applied, self._on_the_way)}
            for job in waiting:
                if job.id in ready:
                    await self._announce("ready", job, NetworkReady(job=job.id, attempt=job.attempt))
                elif job.state is JobState.PLANNED and self._takes_long(job):
                    await self._announce("preparing", job, NetworkPreparing(job=job.id, attempt=job.attempt))
        except BusError as error:
            log.warning("the desired network could not be announced", error=str(error))
            return RETRY_S
        await self._sign_of_life.end()
        return PREPARING_S if waiting else self._resync_s

    def _documents(self, view: StateView) -> dict[str, DesiredNetwork]:
        planned = self._planner.plan(view)
        return planned if self._reserve else {node: best_effort_only(each) for node, each in planned.items()}

    def _on_the_way(self, job: JobRecord) -> Set[str]:
        """No node that is only crossed can hold up a job for good."""
        if self._waited_s(job) >= ON_THE_WAY_S:
            return frozenset()
        nodes = self.reader.view.nodes
        return {name for name in self._planner.nodes_of(job.id) if name in nodes and nodes[name].state == "ready"}

    def _takes_long(self, job: JobRecord) -> bool:
        """Most networks are in place at once; only of the others the preparation is announced."""
        return self._waited_s(job) >= PREPARING_S

    def _waited_s(self, job: JobRecord) -> float:
        return self._clock() - self._seen.setdefault(job.key, self._clock())

    async def _announce(self, kind: str, job: JobRecord, data: NetworkReady | NetworkPreparing) -> None:
        before = self._announced.get((job.key, kind))
        if before is not None and self._clock() - before < REPEAT_S:
            return
        event = new_event(SERVICE, "network", kind, job.id, data, datetime.now(UTC))
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
        self._announced[job.key, kind] = self._clock()

    async def _report(self, message: Message) -> None:
        try:
            applied = Applied.model_validate_json(message.data)
            node, _ = subjects.parse_report(message.subject)
        except ValueError as error:
            log.warning("malformed report ignored", subject=message.subject, error=str(error)[:MAX_PROBLEM])
            return
        if applied.node != node:
            log.warning("report in another node's name ignored", subject=message.subject, node=applied.node)
            return
        before = self._applied.get(node)
        self._applied[node] = applied
        if before is None or set(before.jobs) != set(applied.jobs):
            self.reader.hint.set()
        failed = {key: why for key, why in applied.failed.items() if before is None or before.failed.get(key) != why}
        if failed:
            some = dict(islice(failed.items(), SHOWN))
            log.warning("a node could not apply its network", node=node, jobs=len(failed), reasons=some)

    async def _reconnected(self) -> None:
        self._store.forget()
        self._announced.clear()  # the broker may have lost it
        self.reader.hint.set()
