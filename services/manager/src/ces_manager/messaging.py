"""What the manager hears on the bus, and answers there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter
from sqlalchemy.exc import SQLAlchemyError

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, Delivery, Message, Reject, RemoteError, Retry
from ces_common.db import UNAVAILABLE, WriteTx, cause_of
from ces_common.faults import fault_point
from ces_common.messages.events import (
    MalformedEvent,
    NetworkPreparing,
    NetworkReady,
    PlanProposed,
    PlanRefused,
    PreemptionProposed,
    RevisionProposed,
    parse_event,
)
from ces_common.messages.queries import SnapshotQuery
from ces_common.messages.reports import DataReport, Heartbeat, LeaseGrant, LinkReport, Progress, Status
from ces_common.queuefile import QueueFile
from ces_manager import datasets, link_states, plans, preempting, records, reports, revisions
from ces_manager.api.streams import Bell
from ces_manager.batching import Batcher
from ces_manager.desk import Desk
from ces_manager.hearing import GATHER_S, IGNORED, Reports
from ces_manager.jobs import ANYBODY
from ces_manager.measurements import Measurements
from ces_manager.policy import Policy

log = structlog.get_logger()
SERVICE = "manager"
# Queues that are taken from in turn: jobs that have a plan go on, and flows are led around a dead link, while a burst
# of others waits to have theirs committed; and no plan waits until thousands have been told that they have none.
FACTS = {
    subjects.MANAGER_PLANS: [subjects.events("plan", "proposed"), subjects.events("preemption", "proposed")],
    subjects.MANAGER_REFUSALS: [subjects.events("plan", "refused")],
    subjects.MANAGER_NETWORKS: [
        subjects.events("network", "preparing"),
        subjects.events("network", "ready"),
        subjects.events("revision", "proposed"),
    ],
}
HEARTBEATS = Counter("ces_heartbeats_total", "Heartbeats answered")
DATABASE_RETRY_S = 1.0
NO_DATABASE = "the database does not answer"
PROGRESS_LIMIT = 64 * 1024  # bytes; agents pass on lines of 16 KiB at most, which may grow when they are written anew


class Messaging:
    def __init__(
        self,
        desk: Desk,
        bus: Bus,
        policy: Policy,
        measurements: Measurements,
        bell: Bell,
        queue: QueueFile = ANYBODY,
    ) -> None:
        self._desk, self._bus, self._policy, self._queue = desk, bus, policy, queue
        self._measurements, self._bell = measurements, bell
        self._beats = Batcher(self._renew, GATHER_S)
        self._statuses = Reports(desk, "status", Status.model_validate_json, reports.matters, reports.agent_status)
        self._links = Reports(
            desk, "links", LinkReport.model_validate_json, link_states.matters, link_states.take_report
        )
        self._data = Reports(desk, "data", DataReport.model_validate_json, datasets.matters, datasets.take_report)

    async def start(self) -> None:
        """Provision the broker and begin to listen."""
        await self._bus.provision()
        await self._bus.serve(subjects.rpc(SERVICE, "snapshot"), self._snapshot, queue=SERVICE)
        await self._bus.serve(subjects.ALL_HEARTBEATS, self._heartbeat, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("status"), self._statuses.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("links"), self._links.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("data"), self._data.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("progress"), self._progress)
        for durable, facts in FACTS.items():
            await self._bus.consume(durable, facts, self._fact)

    async def _snapshot(self, message: Message) -> bytes:
        query = SnapshotQuery.model_validate_json(message.data)
        with _answering("snapshot"):
            snapshot = await self._desk.read(lambda tx: records.snapshot(tx, query))
        return snapshot.encode()

    # facts from the scheduler and the network controller

    async def _fact(self, delivery: Delivery) -> None:
        try:
            event = parse_event(delivery.data)
        except MalformedEvent as error:
            raise Reject(str(error)) from error
        if event.bus_subject != delivery.subject:
            raise Reject(f"event {event.id} says it belongs on {event.bus_subject}")

        def act(tx: WriteTx) -> None:
            if tx.first_time(event.id):
                self._take(tx, event.data)

        try:
            await self._desk.write(act)
        except UNAVAILABLE as error:
            raise Retry(DATABASE_RETRY_S, f"{NO_DATABASE}: {cause_of(error)}") from error
        fault_point("commit-ack")

    def _take(self, tx: WriteTx, data: Any) -> None:
        match data:
            case PlanProposed():
                reason = plans.commit_plan(tx, data)
                log.info("plan", job=data.job, plan=data.plan, outcome=reason or "committed")
            case PlanRefused():
                plans.refuse_plan(tx, data)
            case RevisionProposed():
                reason = revisions.commit_revision(tx, data)
                log.info("revision", revision=data.revision, cause=data.cause, outcome=reason or "committed")
            case PreemptionProposed():
                reason = preempting.commit_preemption(tx, data, self._queue)
                log.info(
                    "preemption",
                    preemption=data.preemption,
                    job=data.job,
                    victims=len(data.victims),
                    outcome=reason or "committed",
                )
            case NetworkPreparing():
                plans.network_preparing(tx, data.job, data.attempt)
            case NetworkReady():
                plans.network_ready(tx, data.job, data.attempt)

    # agents

    async def _heartbeat(self, message: Message) -> bytes:
        beat = Heartbeat.model_validate_json(message.data)
        if subjects.parse_heartbeat(message.subject) != beat.node:
            IGNORED.labels("heartbeat").inc()
            raise ValueError("a heartbeat in another node's name")
        self._measurements.heard(beat, self._desk.clock.now())
        with _answering("heartbeat"):
            known = await self._beats.put(beat)
        if not known:
            raise RemoteError("unknown-node", f"no node {beat.node} has joined")
        HEARTBEATS.inc()
        return LeaseGrant(lease_s=self._policy.lease_s).encode()

    async def _renew(self, beats: list[Heartbeat]) -> list[bool]:
        """Write the leases of a batch in one transaction, before any of it is answered; False for a stranger."""
        strangers = await self._desk.in_writer(partial(self._write_leases, beats))
        return [beat.node not in strangers for beat in beats]

    def _write_leases(self, beats: list[Heartbeat]) -> set[str]:
        names = [(beat.node, beat.boot) for beat in beats]
        return reports.heartbeats(self._desk.uow, names, self._desk.clock.now())

    async def _progress(self, message: Message) -> None:
        try:
            if len(message.data) > PROGRESS_LIMIT:
                raise ValueError(f"{len(message.data)} bytes are no line of progress")
            progress = Progress.model_validate_json(message.data)
            node, _ = subjects.parse_report(message.subject)
        except ValueError:
            IGNORED.labels("progress").inc()
            return
        if progress.node == node:
            self._measurements.progressed(progress, self._desk.clock.now())
            self._bell.progress(progress)

    async def keep_streams(self) -> None:
        """After a reconnect the broker may be a new one."""
        try:
            await self._bus.provision()
        except BusError as error:
            log.warning("the streams could not be checked", error=str(error))


@contextmanager
def _answering(what: str) -> Iterator[None]:
    """Whoever asked learns that the database does not answer; what it said, and where it is, is for the log."""
    try:
        yield
    except UNAVAILABLE as error:
        log.warning(NO_DATABASE, asked=what, error=cause_of(error))
        raise RemoteError("unavailable", NO_DATABASE) from None
    except SQLAlchemyError as error:
        log.exception("a request failed", asked=what)
        raise RemoteError("internal", f"the manager failed at this: {type(error).__name__}") from None
