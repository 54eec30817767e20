"""The manager's subscriptions on the bus: proposals and readiness of networks, agents' reports, snapshots."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, Delivery, Message, Reject, RemoteError, Retry
from ces_common.db import UNAVAILABLE, WriteTx, cause_of
from ces_common.fault_points import fault_point
from ces_common.messages.checkpoints import CheckpointReport
from ces_common.messages.confinement import ConfinementReport
from ces_common.messages.events import (
    DeadlineJudged,
    MalformedEvent,
    NetworkPreparing,
    NetworkReady,
    PlanRefused,
    parse_event,
)
from ces_common.messages.plans import CpuProposed, PlanProposed, PreemptionProposed, ResizeProposed, RevisionProposed
from ces_common.messages.records import SnapshotQuery
from ces_common.messages.reports import MAX_HEARTBEAT, DataReport, LinkReport, Status
from ces_common.messages.scores import ScoreReport
from ces_common.queuefile import QueueFile
from ces_common.rates import SenderRate
from ces_common.tracing import TRACEPARENT
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.jobs import checkpoints, network_readiness, worker_reports
from ces_manager.jobs.deadline import note_judgement
from ces_manager.jobs.submission import ANYBODY
from ces_manager.measurements import Measurements
from ces_manager.messaging.answers import NO_DATABASE, answering
from ces_manager.messaging.heartbeat_intake import HeartbeatIntake
from ces_manager.messaging.peers import Beat
from ces_manager.messaging.progress_intake import ProgressIntake
from ces_manager.messaging.report_intake import ReportIntake
from ces_manager.messaging.snapshot import Snapshots
from ces_manager.nodes import confinements, datasets, link_reports, owners, scores
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.plans import commit, cpu_change, preemption, resize, revision
from ces_manager.plans.plan_metrics import note_outcome
from ces_manager.plans.refusal import note_refusal
from ces_manager.timeouts import Timeouts

log = structlog.get_logger()
SERVICE = "manager"
# Queues that are served in turn, so that a burst in one delays no other: jobs with a plan go on, and flows are
# rerouted, while many plans wait to be committed, and no plan waits behind thousands of refusals.
FACTS = {
    subjects.MANAGER_PLANS: [
        subjects.events("plan", "proposed"),
        subjects.events("preemption", "proposed"),
        subjects.events("resize", "proposed"),
        subjects.events("cpu", "proposed"),
        subjects.events("deadline", "judged"),
    ],
    subjects.MANAGER_REFUSALS: [subjects.events("plan", "refused")],
    subjects.MANAGER_NETWORKS: [
        subjects.events("network", "preparing"),
        subjects.events("network", "ready"),
        subjects.events("revision", "proposed"),
    ],
}
DATABASE_RETRY_S = 1.0
MAX_FETCH = 0  # bytes: the subject says it all
FETCHES_PER_S, FETCH_BURST = (
    2.0,
    20,
)  # of each kind; an agent asks every CES_RESYNC_S, and after a reconnect


class Messaging:
    """``share``: called with the heartbeats that this manager has taken in."""

    def __init__(
        self,
        database: Database,
        bus: Bus,
        timeouts: Timeouts,
        failure_detector: FailureDetector,
        measurements: Measurements,
        broadcast: Broadcast,
        queue: QueueFile = ANYBODY,
        share: Callable[[Sequence[Beat]], None] = lambda _: None,
    ) -> None:
        self._database, self._bus, self._queue = database, bus, queue
        self._speeds = measurements.speeds
        self._progress = ProgressIntake(database, measurements, broadcast)
        self._heartbeats = HeartbeatIntake(database, measurements, timeouts, failure_detector, share)
        self._snapshots = Snapshots()
        self._listening = False  # no heartbeat arrives before
        self._fetch_rate = SenderRate(FETCHES_PER_S, FETCH_BURST)
        self._statuses = ReportIntake(
            database, "status", Status.model_validate_json, worker_reports.with_news, owners.take_reports
        )
        self._links = ReportIntake(
            database,
            "links",
            LinkReport.model_validate_json,
            link_reports.with_news,
            partial(link_reports.take_reports, measurements=measurements),
        )
        self._data = ReportIntake(
            database, "data", DataReport.model_validate_json, datasets.with_news, datasets.take_reports
        )
        self._checkpoints = ReportIntake(
            database,
            "checkpoints",
            CheckpointReport.model_validate_json,
            checkpoints.with_news,
            checkpoints.take_reports,
        )
        self._confinements = ReportIntake(
            database,
            "confinement",
            ConfinementReport.model_validate_json,
            confinements.with_news,
            confinements.take_reports,
        )
        self._scores = ReportIntake(
            database,
            "scores",
            ScoreReport.model_validate_json,
            scores.Changes(database.clock.steady).with_news,
            scores.take_reports,
        )

    async def start(self, streams_made: Callable[[], Awaitable[None]] | None = None) -> None:
        """Begin to hear nodes and to answer questions, which needs no stream; once ``streams_made`` is through, also to
        act on what the other services say."""
        await self._bus.serve(subjects.rpc(SERVICE, "snapshot"), self._snapshot, queue=SERVICE)
        await self._bus.serve_latest(
            subjects.ALL_HEARTBEATS, self._heartbeats.answer, largest=MAX_HEARTBEAT, queue=SERVICE
        )
        await self._bus.serve(subjects.ALL_FETCHES, self._fetch, largest=MAX_FETCH, queue=SERVICE)
        self._listening = True
        await self._bus.subscribe(subjects.reports("status"), self._statuses.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("links"), self._links.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("data"), self._data.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("confinement"), self._confinements.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("checkpoints"), self._checkpoints.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("scores"), self._scores.heard, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("progress"), self._progress.heard)
        if streams_made is not None:
            await streams_made()
        for durable, facts in FACTS.items():
            await self._bus.consume(durable, facts, self._fact)

    def hears(self) -> bool:
        """Whether a heartbeat that is sent now arrives, and has its lease renewed soon."""
        return self._listening and self._bus.connected and self._heartbeats.keeps_up(self._database.clock.steady())

    async def _snapshot(self, message: Message) -> bytes:
        query = SnapshotQuery.model_validate_json(message.data)
        with answering("snapshot"):
            return await self._database.tell(lambda tx: self._snapshots.of(tx, query).encode())

    # facts from the scheduler and the network controller

    async def _fact(self, delivery: Delivery) -> None:
        try:
            event = parse_event(delivery.data)
        except MalformedEvent as error:
            raise Reject(str(error)) from error
        if event.bus_subject != delivery.subject:
            raise Reject(f"event {event.id} says it belongs on {event.bus_subject}")

        def act(tx: WriteTx) -> None:
            tx.cause = delivery.headers.get(TRACEPARENT) or event.traceparent
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
                note_outcome(tx, "plan", reason)
                log.info("plan", job=data.job, plan=data.plan, outcome=reason or "committed")
            case PlanRefused():
                note_refusal(tx, data)
            case DeadlineJudged():
                note_judgement(tx, data)
            case ResizeProposed():
                reason = resize.commit_resize(tx, data, self._speeds)
                note_outcome(tx, "resize", reason)
                log.info("resize", job=data.job, resize=data.resize, size=data.size, outcome=reason or "committed")
            case CpuProposed():
                reason = cpu_change.commit_cpu(tx, data)
                note_outcome(tx, "cpu", reason)
                log.info("cpu", job=data.job, change=data.change, cpu=data.cpu, outcome=reason or "committed")
            case RevisionProposed():
                reason = revision.commit_revision(tx, data)
                note_outcome(tx, "revision", reason)
                log.info("revision", revision=data.revision, cause=data.cause, outcome=reason or "committed")
            case PreemptionProposed():
                reason = preemption.commit_preemption(tx, data, self._queue)
                note_outcome(tx, "preemption", reason)
                log.info(
                    "preemption",
                    preemption=data.preemption,
                    job=data.job,
                    victims=len(data.victims),
                    outcome=reason or "committed",
                )
            case NetworkPreparing():
                network_readiness.network_preparing(tx, data.job, data.attempt)
            case NetworkReady(move=str(move)):
                network_readiness.move_ready(tx, data.job, move)
            case NetworkReady():
                network_readiness.network_ready(tx, data.job, data.attempt)

    # agents

    async def _fetch(self, message: Message) -> bytes:
        """A node's desired state of one kind, also while the controller that keeps it is away; empty where there is
        none."""
        key = subjects.parse_fetch(message.subject)
        if not self._fetch_rate.allows(key, self._database.clock.steady()):
            raise RemoteError("too-often", "this node asks for its desired state too often")
        return await self._bus.kv_get(key) or b""
