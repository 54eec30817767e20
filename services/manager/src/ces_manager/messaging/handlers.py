"""The manager's subscriptions on the bus: proposals and readiness of networks, agents' reports, snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter
from sqlalchemy.exc import SQLAlchemyError

from ces_common import subjects
from ces_common.bus.port import Bus, Delivery, Message, Reject, RemoteError, Retry
from ces_common.db import UNAVAILABLE, WriteTx, cause_of
from ces_common.fault_points import fault_point
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
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.jobs import network_readiness, worker_reports
from ces_manager.jobs.submission import ANYBODY
from ces_manager.measurements import Measurements
from ces_manager.messaging.batcher import Batcher
from ces_manager.messaging.report_intake import GATHER_S, IGNORED, ReportIntake
from ces_manager.messaging.snapshot import snapshot
from ces_manager.network import link_states
from ces_manager.nodes import datasets, heartbeats
from ces_manager.plans import commit, preemption, revision
from ces_manager.plans.refusal import note_refusal
from ces_manager.timeouts import Timeouts

log = structlog.get_logger()
SERVICE = "manager"
# Queues that are served in turn, so that a burst in one delays no other: jobs with a plan go on, and flows are
# rerouted, while many plans wait to be committed, and no plan waits behind thousands of refusals.
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
PROGRESS_LIMIT = 64 * 1024  # bytes; agents pass on lines of at most 16 KiB, which may grow when encoded


class Messaging:
    def __init__(
        self,
        database: Database,
        bus: Bus,
        timeouts: Timeouts,
        measurements: Measurements,
        broadcast: Broadcast,
        queue: QueueFile = ANYBODY,
    ) -> None:
        self._database, self._bus, self._timeouts, self._queue = database, bus, timeouts, queue
        self._measurements, self._broadcast = measurements, broadcast
        self._beats = Batcher(self._renew, GATHER_S)
        self._statuses = ReportIntake(
            database, "status", Status.model_validate_json, worker_reports.matters, worker_reports.take_report
        )
        self._links = ReportIntake(
            database, "links", LinkReport.model_validate_json, link_states.matters, link_states.take_report
        )
        self._data = ReportIntake(
            database, "data", DataReport.model_validate_json, datasets.matters, datasets.take_report
        )

    async def start(self) -> None:
        """Begin to listen."""
        await self._bus.serve(subjects.rpc(SERVICE, "snapshot"), self._snapshot, queue=SERVICE)
        await self._bus.serve(subjects.ALL_HEARTBEATS, self._heartbeat, queue=SERVICE)
        await self._bus.serve(subjects.ALL_FETCHES, self._fetch, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("status"), self._statuses.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("links"), self._links.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("data"), self._data.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("progress"), self._progress)
        for durable, facts in FACTS.items():
            await self._bus.consume(durable, facts, self._fact)

    async def _snapshot(self, message: Message) -> bytes:
        query = SnapshotQuery.model_validate_json(message.data)
        with _answering("snapshot"):
            found = await self._database.read(lambda tx: snapshot(tx, query))
        return found.encode()

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
            await self._database.write(act)
        except UNAVAILABLE as error:
            raise Retry(DATABASE_RETRY_S, f"{NO_DATABASE}: {cause_of(error)}") from error
        fault_point("commit-ack")

    def _take(self, tx: WriteTx, data: Any) -> None:
        match data:
            case PlanProposed():
                reason = commit.commit_plan(tx, data)
                log.info("plan", job=data.job, plan=data.plan, outcome=reason or "committed")
            case PlanRefused():
                note_refusal(tx, data)
            case RevisionProposed():
                reason = revision.commit_revision(tx, data)
                log.info("revision", revision=data.revision, cause=data.cause, outcome=reason or "committed")
            case PreemptionProposed():
                reason = preemption.commit_preemption(tx, data, self._queue)
                log.info(
                    "preemption",
                    preemption=data.preemption,
                    job=data.job,
                    victims=len(data.victims),
                    outcome=reason or "committed",
                )
            case NetworkPreparing():
                network_readiness.network_preparing(tx, data.job, data.attempt)
            case NetworkReady():
                network_readiness.network_ready(tx, data.job, data.attempt)

    # agents

    async def _heartbeat(self, message: Message) -> bytes:
        beat = Heartbeat.model_validate_json(message.data)
        if subjects.parse_heartbeat(message.subject) != beat.node:
            IGNORED.labels("heartbeat").inc()
            raise ValueError("a heartbeat in another node's name")
        self._measurements.heard(beat, self._database.clock.now())
        with _answering("heartbeat"):
            known = await self._beats.put(beat)
        if not known:
            raise RemoteError("unknown-node", f"no node {beat.node} has joined")
        HEARTBEATS.inc()
        return LeaseGrant(lease_s=self._timeouts.lease_s).encode()

    async def _renew(self, beats: list[Heartbeat]) -> list[bool]:
        """Renew the leases of a batch in one transaction, before any is answered; False for a node that never
        joined."""
        strangers = await self._database.in_writer(partial(self._write_leases, beats))
        return [beat.node not in strangers for beat in beats]

    def _write_leases(self, beats: list[Heartbeat]) -> set[str]:
        names = [(beat.node, beat.boot) for beat in beats]
        return heartbeats.renew_leases(self._database.uow, names, self._database.clock.now())

    async def _fetch(self, message: Message) -> bytes:
        """A node's desired state of one kind, also while the controller that keeps it is away; empty where there is
        none."""
        return await self._bus.kv_get(subjects.parse_fetch(message.subject)) or b""

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
            self._measurements.progressed(progress, self._database.clock.now())
            self._broadcast.progress(progress)


@contextmanager
def _answering(what: str) -> Iterator[None]:
    """Tells the asker only that the database does not answer; its own words, with its address, go to the log."""
    try:
        yield
    except UNAVAILABLE as error:
        log.warning(NO_DATABASE, asked=what, error=cause_of(error))
        raise RemoteError("unavailable", NO_DATABASE) from None
    except SQLAlchemyError as error:
        log.exception("a request failed", asked=what)
        raise RemoteError("internal", f"the manager failed at this: {type(error).__name__}") from None
