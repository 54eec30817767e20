"""What the manager hears on the bus, and answers there."""

from __future__ import annotations

import asyncio
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
    parse_event,
)
from ces_common.messages.queries import SnapshotQuery
from ces_common.messages.reports import Heartbeat, LeaseGrant, Progress, Status
from ces_manager import plans, records, reports
from ces_manager.api.streams import Bell
from ces_manager.batching import Batcher
from ces_manager.desk import Desk
from ces_manager.measurements import Measurements
from ces_manager.policy import Policy

log = structlog.get_logger()
SERVICE = "manager"
# Two queues, taken from in turn: jobs that have a plan go on while a burst of others waits to have theirs committed.
FACTS = {
    subjects.MANAGER_PLANS: [subjects.events("plan", "proposed"), subjects.events("plan", "refused")],
    subjects.MANAGER_NETWORKS: [subjects.events("network", "preparing"), subjects.events("network", "ready")],
}
HEARTBEATS = Counter("ces_heartbeats_total", "Heartbeats answered")
IGNORED = Counter("ces_messages_ignored_total", "Malformed or forged messages ignored", ["kind"])
DATABASE_RETRY_S = 1.0
NO_DATABASE = "the database does not answer"
QUIET_S = 5.0  # how long a report that an agent repeats word for word is not looked at again
PROGRESS_LIMIT = 64 * 1024  # bytes; agents pass on lines of 16 KiB at most, which may grow when they are written anew
GATHER_S = 0.02  # how long reports of agents wait for others, to share a transaction


class Messaging:
    def __init__(self, desk: Desk, bus: Bus, policy: Policy, measurements: Measurements, bell: Bell) -> None:
        self._desk, self._bus, self._policy = desk, bus, policy
        self._measurements, self._bell = measurements, bell
        self._beats = Batcher(self._renew, GATHER_S)
        self._statuses = Batcher(self._take_statuses, GATHER_S)
        self._quiet: dict[str, tuple[bytes, float]] = {}  # node -> its last report, not looked at again until

    async def start(self) -> None:
        """Provision the broker and begin to listen."""
        await self._bus.provision()
        await self._bus.serve(subjects.rpc(SERVICE, "snapshot"), self._snapshot, queue=SERVICE)
        await self._bus.serve(subjects.ALL_HEARTBEATS, self._heartbeat, queue=SERVICE)
        await self._bus.subscribe(subjects.reports("status"), self._status, queue=SERVICE)
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

    async def _status(self, message: Message) -> None:
        try:
            status = Status.model_validate_json(message.data)
            node, _ = subjects.parse_report(message.subject)
        except ValueError as error:
            IGNORED.labels("status").inc()
            log.warning("malformed report ignored", subject=message.subject, error=str(error))
            return
        if status.node != node:
            IGNORED.labels("status").inc()
            log.warning("report in another node's name ignored", subject=message.subject)
            return
        now = self._desk.clock.steady()
        quiet = self._quiet.get(node)
        if quiet is not None and quiet[0] == message.data and now < quiet[1]:
            return
        self._quiet[node] = (message.data, now + QUIET_S)
        self._statuses.put(status).add_done_callback(partial(self._taken, node))

    async def _take_statuses(self, statuses: list[Status]) -> list[None]:
        """Only the last report of each node counts; most say nothing new and lock nothing."""
        last = {status.node: status for status in statuses}.values()
        news = await self._desk.read(lambda tx: [status for status in last if reports.matters(tx, status)])
        if news:
            await self._desk.write(lambda tx: self._move(tx, news))
        return [None] * len(statuses)

    def _move(self, tx: WriteTx, news: list[Status]) -> None:
        for status in news:
            reports.agent_status(tx, status)

    def _taken(self, node: str, outcome: asyncio.Future[None]) -> None:
        error = None if outcome.cancelled() else outcome.exception()
        if error is not None:
            log.warning("a report is dropped, its agent repeats it", node=node, error=cause_of(error))
            self._quiet.pop(node, None)

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
