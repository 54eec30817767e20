"""Which jobs have their network in place, by what agents report, and the word of it to the manager."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import UTC, datetime
from itertools import islice

import structlog
from prometheus_client import Counter

from ces_common import subjects
from ces_common.at_once import at_once
from ces_common.bus.port import Bus, BusError, Message
from ces_common.messages.events import NetworkPreparing, NetworkReady, new_event
from ces_common.messages.records import JobRecord
from ces_common.messages.reports import Applied
from ces_common.rates import SenderRate
from ces_common.service import Hint
from ces_common.state_view import StateView
from ces_common.states import JobState
from ces_common.task_move import MoveState
from ces_common.tracing import AttemptSpans, headers
from ces_network_ctl.job_network import coming_nodes, involved_nodes

log = structlog.get_logger()
IGNORED = Counter("ces_reports_ignored_total", "Reports that are too large, or one too many of a node")
SERVICE = "network-ctl"
PREPARING_S = 1.0
ON_THE_WAY_S = 10.0  # as long a job waits for nodes that only its best-effort traffic crosses
MAX_PROBLEM, SHOWN = 300, 5  # characters of what is wrong with a report, and jobs of which it is said
REPEAT_S = 15.0  # an announcement about a job that still waits is repeated after this: the manager may be busy
LARGEST = 4 * 1024 * 1024  # bytes of a report; more than a node's jobs can take
PER_S, BURST = 50.0, 200  # reports of one node
SETTLE_S = 0.01  # reports come in flocks, and one look serves them all

Clock = Callable[[], float]  # seconds, steady


OnTheWay = Callable[[JobRecord], Set[str] | None]


def waits_for_network(job: JobRecord) -> bool:
    """A job that is resized does so once nothing of its former size is left."""
    if job.state is JobState.RESIZING:
        return job.resizing is None
    return job.state in (JobState.PLANNED, JobState.PREPARING)


def _waits_to_move(job: JobRecord) -> bool:
    return job.moving is not None and job.moving.state is MoveState.RESERVED and bool(coming_nodes(job))


def ready_jobs(jobs: Iterable[JobRecord], applied: Mapping[str, Applied], on_the_way: OnTheWay) -> list[JobRecord]:
    """The jobs that wait for their network although every node has its share of it in place. ``on_the_way``: the nodes
    that a job's best-effort traffic crosses and that can be reached now; None where its network is not planned yet.
    Pure."""
    return [
        job
        for job in jobs
        if waits_for_network(job)
        and job.allocations
        and (crossed := on_the_way(job)) is not None
        and all(node in applied and job.key in applied[node].jobs for node in involved_nodes(job) | crossed)
    ]


def ready_moves(jobs: Iterable[JobRecord], applied: Mapping[str, Applied]) -> list[JobRecord]:
    """The jobs with a task that waits to move and whose destination has its network in place. Pure."""
    return [
        job
        for job in jobs
        if all(node in applied and job.moving_key in applied[node].jobs for node in coming_nodes(job))
    ]


class Announcements:
    """``view``: the state as it is known now. ``nodes_of``: the nodes with a part in an attempt's network; None where
    it is not planned yet.

    A report is looked at as soon as it comes, without asking the manager for its state: the job that it is about is
    known, since its documents were made of it.
    """

    def __init__(self, bus: Bus, clock: Clock, view: Callable[[], StateView], nodes_of: OnTheWay) -> None:
        self._bus, self._clock, self._view, self._nodes_of = bus, clock, view, nodes_of
        self._news = Hint()
        self._speaking = asyncio.Lock()
        self._applied: dict[str, Applied] = {}
        self._rate = SenderRate(PER_S, BURST)
        self._seen: dict[str, float] = {}  # attempt -> when it was first seen without its network
        self._said: dict[tuple[str, str], float] = {}  # attempt and kind of event -> when
        self._traces = AttemptSpans("await agents")

    async def listen(self) -> None:
        await self._bus.subscribe(subjects.reports("applied"), self._report)

    async def run(self) -> None:
        """Say what reports make true, until cancelled."""
        while True:
            await self._news.wait(math.inf)
            await asyncio.sleep(SETTLE_S)
            try:
                await self.say()
            except BusError as error:  # the next look at the state says it again
                log.warning("that a network is in place could not be announced", error=str(error))

    async def say(self) -> bool:
        """Announce what has become true since the last time; returns whether a job still waits for its network. Raises
        BusError."""
        async with self._speaking:
            view = self._view()
            waiting = [job for job in view.jobs.values() if waits_for_network(job)]
            moving = [job for job in view.jobs.values() if _waits_to_move(job)]
            self._forget(view, {job.key for job in waiting} | {job.moving_key for job in moving})
            ready = {job.id for job in ready_jobs(waiting, self._applied, self._on_the_way)}
            slow = [job for job in waiting if job.state is JobState.PLANNED and self._takes_long(job)]
            await at_once(self._announce_ready, [job for job in waiting if job.id in ready])
            await at_once(self._announce_preparing, [job for job in slow if job.id not in ready])
            await at_once(self._announce_move, ready_moves(moving, self._applied))
            return bool(waiting or moving)

    def trace(self, contexts: Mapping[str, str]) -> None:
        """``contexts``: of traced attempts whose documents are written by now, by key."""
        self._traces.see(contexts)

    def repeat(self) -> None:
        """Say everything again: the broker may have lost it."""
        self._said.clear()

    def _forget(self, view: StateView, keys: Set[str]) -> None:
        self._seen = {key: since for key, since in self._seen.items() if key in keys}
        self._said = {said: when for said, when in self._said.items() if said[0] in keys}
        self._applied = {node: applied for node, applied in self._applied.items() if node in view.nodes}

    def _on_the_way(self, job: JobRecord) -> Set[str] | None:
        """No node that is only crossed can hold up a job for good."""
        crossed = self._nodes_of(job)
        if crossed is None or self._waited_s(job) >= ON_THE_WAY_S:
            return None if crossed is None else frozenset()
        nodes = self._view().nodes
        return {name for name in crossed if name in nodes and nodes[name].state == "ready"}

    def _takes_long(self, job: JobRecord) -> bool:
        """Most networks are in place at once; only of the others the preparation is announced."""
        return self._waited_s(job) >= PREPARING_S

    def _waited_s(self, job: JobRecord) -> float:
        return self._clock() - self._seen.setdefault(job.key, self._clock())

    async def _announce_ready(self, job: JobRecord) -> None:
        await self._announce("ready", job, NetworkReady(job=job.id, attempt=job.attempt))

    async def _announce_move(self, job: JobRecord) -> None:
        assert job.moving is not None
        ready = NetworkReady(job=job.id, attempt=job.attempt, move=job.moving.move)
        await self._announce("ready", job, ready, job.moving_key)

    async def _announce_preparing(self, job: JobRecord) -> None:
        await self._announce("preparing", job, NetworkPreparing(job=job.id, attempt=job.attempt))

    async def _announce(
        self, kind: str, job: JobRecord, data: NetworkReady | NetworkPreparing, about: str | None = None
    ) -> None:
        """``about``: what it is known by; the attempt if left out."""
        key = about or job.key
        before = self._said.get((key, kind))
        if before is not None and self._clock() - before < REPEAT_S:
            return
        context = self._traces.contexts.get(key) if job.traceparent is not None else None
        event = new_event(SERVICE, "network", kind, job.id, data, datetime.now(UTC), traceparent=context)
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id, headers=headers(context))
        if kind == "ready":
            self._traces.done({key})
        self._said[key, kind] = self._clock()

    async def _report(self, message: Message) -> None:
        try:
            node, _ = subjects.parse_report(message.subject)
            if len(message.data) > LARGEST or not self._rate.allows(node, self._clock()):
                IGNORED.inc()  # and no line in the log, of which there would be as many
                return
            applied = Applied.model_validate_json(message.data)
        except ValueError as error:
            log.warning("malformed report ignored", subject=message.subject, error=str(error)[:MAX_PROBLEM])
            return
        if applied.node != node:
            log.warning("report in another node's name ignored", subject=message.subject, node=applied.node)
            return
        before = self._applied.get(node)
        self._applied[node] = applied
        if before is None or set(before.jobs) != set(applied.jobs):
            self._news.set()
        failed = {key: why for key, why in applied.failed.items() if before is None or before.failed.get(key) != why}
        if failed:
            some = dict(islice(failed.items(), SHOWN))
            log.warning("a node could not apply its network", node=node, jobs=len(failed), reasons=some)
