"""Intake of the reports that agents repeat: only changes reach the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import structlog
from prometheus_client import Counter

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.db import UNAVAILABLE, ReadTx, WriteTx, cause_of
from ces_common.latest import LatestBatches
from ces_common.rates import SenderRate
from ces_manager.database import Database
from ces_manager.messaging.answers import problem_of, salvage

log = structlog.get_logger()
IGNORED = Counter("ces_messages_ignored_total", "Malformed or forged messages ignored", ["kind"])
QUIET_S = 5.0  # how long a report that an agent repeats word for word is not looked at again
LARGEST = 4 * 1024 * 1024  # bytes; more than a node's workers and links can take
PER_S, BURST = 50.0, 200
IN_ONE_TRANSACTION = 500  # reports: what else is written waits no longer than for these


class Report(Protocol):
    @property
    def node(self) -> str: ...


R = TypeVar("R", bound=Report)


class ReportIntake(Generic[R]):
    """One kind of report. ``news``: those of several nodes' reports that say anything new; ``take`` stores them."""

    def __init__(
        self,
        database: Database,
        kind: subjects.ReportKind,
        parse: Callable[[bytes], R],
        news: Callable[[ReadTx, Sequence[R]], Sequence[R]],
        take: Callable[[WriteTx, Sequence[R]], object],
    ) -> None:
        self._database, self._kind, self._parse, self._news, self._take = database, kind, parse, news, take
        self._batches = LatestBatches(self._take_all)
        self._rate = SenderRate(PER_S, BURST)
        # node -> its last report, not looked at again until; in the order in which that ends
        self._quiet: dict[str, tuple[bytes, float]] = {}

    async def heard(self, message: Message) -> None:
        try:
            node, _ = subjects.parse_report(message.subject)
        except ValueError as error:
            self._ignore(message, problem_of(error))
            return
        now = self._database.clock.steady()
        quiet = self._quiet.get(node)
        if quiet is not None and quiet[0] == message.data and now < quiet[1]:
            return
        if len(message.data) > LARGEST or not self._rate.allows(node, now):
            IGNORED.labels(self._kind).inc()  # and no line in the log, of which there would be as many
            return
        self._forget_quiet(now)
        self._quiet.pop(node, None)
        self._quiet[node] = (message.data, now + QUIET_S)
        if not self._batches.put(node, message, len(message.data)):
            self._quiet.pop(node)

    def _forget_quiet(self, now: float) -> None:
        while self._quiet:
            node = next(iter(self._quiet))
            if now < self._quiet[node][1]:
                return
            del self._quiet[node]

    async def _take_all(self, messages: list[Message]) -> None:
        """Take in the last report of each node; most say nothing new and lock nothing. One that cannot be taken in
        costs no other node anything."""
        read = await asyncio.to_thread(lambda: [self._read(message) for message in messages])
        reports = [report for report in read if report is not None]
        try:
            for first in range(0, len(reports), IN_ONE_TRANSACTION):
                for report, error in await salvage(reports[first : first + IN_ONE_TRANSACTION], self._store):
                    log.error("a report cannot be taken in", kind=self._kind, node=report.node, error=cause_of(error))
        except UNAVAILABLE as error:
            log.warning("reports are dropped, their agents repeat them", reports=len(reports), error=cause_of(error))
            for report in reports:
                self._quiet.pop(report.node, None)

    def _read(self, message: Message) -> R | None:
        try:
            report = self._parse(message.data)
            if report.node != subjects.parse_report(message.subject)[0]:
                raise ValueError("a report in another node's name")
        except ValueError as error:
            self._ignore(message, problem_of(error))
            return None
        return report

    async def _store(self, reports: Sequence[R]) -> None:
        news = await self._database.read(lambda tx: self._news(tx, reports))
        if news:
            await self._database.write(lambda tx: self._take(tx, news))

    def _ignore(self, message: Message, why: str) -> None:
        IGNORED.labels(self._kind).inc()
        log.warning("a report is ignored", subject=message.subject, error=why)
