"""Intake of heartbeats: the leases of all that wait are renewed together, apart from what else is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import structlog
from prometheus_client import Counter

from ces_common import subjects
from ces_common.bus.port import Message, RemoteError
from ces_common.db import UNAVAILABLE, cause_of
from ces_common.latest import LatestBatches
from ces_common.messages.reports import OTHER_MACHINE, Heartbeat, LeaseGrant
from ces_common.rates import SenderRate
from ces_manager.database import Database
from ces_manager.measurements import Measurements
from ces_manager.messaging.answers import answering, failure, problem_of, salvage
from ces_manager.messaging.peers import Beat
from ces_manager.messaging.report_intake import IGNORED
from ces_manager.nodes import heartbeats, owners
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.timeouts import Timeouts

log = structlog.get_logger()
HEARTBEATS = Counter("ces_heartbeats_total", "Heartbeats answered")
AT_ONCE = 2000  # leases in one transaction: others write in between
SLOW_S = 2.0  # a batch that takes longer keeps others waiting
FAILED_S = 10.0  # for how long after leases could not be written their nodes are not blamed
PER_S, BURST = 10.0, 20


class HeartbeatIntake:
    """``share``: called with the heartbeats that were taken in, for the other managers."""

    def __init__(
        self,
        database: Database,
        measurements: Measurements,
        timeouts: Timeouts,
        failure_detector: FailureDetector,
        share: Callable[[Sequence[Beat]], None],
    ) -> None:
        self._share = share
        self._database, self._measurements = database, measurements
        self._timeouts, self._failure_detector = timeouts, failure_detector
        self._rate = SenderRate(PER_S, BURST)
        self._returned = LatestBatches(self._welcome_back)
        self._loans, self._told = owners.Loans(), LatestBatches(self._take_owners)
        self._since: float | None = None  # when the batch came that is being worked on
        self._failed_at: float | None = None  # when leases could not be written

    def keeps_up(self, now: float) -> bool:
        """Whether a heartbeat that arrives now has its lease renewed soon."""
        if self._failed_at is not None and now - self._failed_at < FAILED_S:
            return False
        return self._since is None or now - self._since < SLOW_S

    async def answer(self, messages: list[Message]) -> list[bytes | RemoteError]:
        steady = self._database.clock.steady
        self._since = steady()
        try:
            beats = await asyncio.to_thread(self._read, messages, self._since)
            good = {beat.node: beat for beat in beats if isinstance(beat, Heartbeat)}
            with answering("heartbeat"):
                renewed = await self._renew(list(good.values()))
        except Exception:
            self._failed_at = steady()
            raise
        finally:
            self._since = None
        now, held = self._database.clock.now(), [node for node, answer in renewed.items() if isinstance(answer, bytes)]
        for node in held:
            self._measurements.heard(good[node], now)
            HEARTBEATS.inc()
        read = zip(beats, messages, strict=True)
        sent = {beat.node: message.data for beat, message in read if isinstance(beat, Heartbeat)}
        self._share([Beat(node, sent[node]) for node in held])
        return [self._answer_to(beat, good, renewed) if isinstance(beat, Heartbeat) else beat for beat in beats]

    def _answer_to(
        self, beat: Heartbeat, good: Mapping[str, Heartbeat], renewed: Mapping[str, bytes | RemoteError]
    ) -> bytes | RemoteError:
        if good[beat.node].machine != beat.machine:  # a grant is for the one that asked
            return RemoteError(OTHER_MACHINE, f"two machines ask for the lease of node {beat.node} at once")
        return renewed[beat.node]

    def _read(self, messages: list[Message], now: float) -> list[Heartbeat | RemoteError]:
        return [self._read_one(message, now) for message in messages]

    def _read_one(self, message: Message, now: float) -> Heartbeat | RemoteError:
        try:
            node = subjects.parse_heartbeat(message.subject)
            if not self._rate.allows(node, now):
                return RemoteError("too-many", f"a node may send {PER_S:g} heartbeats a second")
            beat = Heartbeat.model_validate_json(message.data)
            if beat.node != node:
                raise ValueError("a heartbeat in another node's name")
        except ValueError as error:
            IGNORED.labels("heartbeat").inc()
            problem = problem_of(error)
            log.warning("malformed heartbeat refused", subject=message.subject, error=problem)
            return RemoteError("malformed", problem)
        return beat

    async def _renew(self, beats: list[Heartbeat]) -> dict[str, bytes | RemoteError]:
        answers: dict[str, bytes | RemoteError] = {}

        async def renew(some: Sequence[Heartbeat]) -> None:
            askers = [heartbeats.Asker(beat.node, beat.boot, beat.machine) for beat in some]
            now, names = self._database.clock.now(), {beat.node: beat.reclaimed for beat in some}
            ended = heartbeats.ended_leases(self._failure_detector, names, self._timeouts)
            joined = await self._database.in_lease_writer(
                lambda: heartbeats.renew_leases(self._database.uow, askers, now, ended)
            )
            for node, reclaimed in names.items():
                known = joined.get(node)
                if known is None:
                    answers[node] = RemoteError("unknown-node", f"no node {node} has joined")
                    continue
                if not known.held:
                    answers[node] = self._other_machine(node, now)
                    continue
                grant = LeaseGrant(
                    lease_s=self._timeouts.lease_s, epoch=known.epoch, least_generation=known.least_generation
                )
                answers[node] = grant.encode()
                if known.state == "unreachable":
                    self._returned.put(node, node)
                steady = self._database.clock.steady()
                if self._loans.takes(node, known=known.reclaimed, told=reclaimed, now=steady):
                    self._told.put(node, (node, reclaimed))

        for start in range(0, len(beats), AT_ONCE):
            for beat, error in await salvage(beats[start : start + AT_ONCE], renew):
                log.error("a lease could not be renewed", node=beat.node, error=cause_of(error))
                answers[beat.node] = failure(error)
        return answers

    def _other_machine(self, node: str, now: datetime) -> RemoteError:
        why = (
            f"another machine, or an earlier boot of this one, holds the lease of node {node}; it passes on when that "
            f"was silent for {self._timeouts.lease_s + self._timeouts.margin_s:g} s"
        )
        if not self._measurements.contested(node):
            log.warning("two machines use one node's credential, or one has rebooted", node=node)
        self._measurements.contest(node, now)
        return RemoteError(OTHER_MACHINE, why)

    async def _welcome_back(self, nodes: list[str]) -> None:
        try:
            await self._database.write(lambda tx: heartbeats.welcome_back(tx, nodes))
        except UNAVAILABLE as error:  # their next heartbeats bring them here again
            log.warning("nodes that are back could not be noted", nodes=len(nodes), error=cause_of(error))

    async def _take_owners(self, told: list[tuple[str, bool]]) -> None:
        try:
            await self._database.write(lambda tx: owners.take_news(tx, dict(told)))
        except UNAVAILABLE as error:  # their next heartbeats bring them here again
            log.warning("what owners of devices do could not be noted", nodes=len(told), error=cause_of(error))
