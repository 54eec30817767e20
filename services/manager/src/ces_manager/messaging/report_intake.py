"""Intake of the reports that agents repeat: only changes reach the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

import structlog
from prometheus_client import Counter

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.db import ReadTx, WriteTx, cause_of
from ces_manager.database import Database
from ces_manager.messaging.batcher import Batcher

log = structlog.get_logger()
IGNORED = Counter("ces_messages_ignored_total", "Malformed or forged messages ignored", ["kind"])
QUIET_S = 5.0  # how long a report that an agent repeats word for word is not looked at again
GATHER_S = 0.02  # how long reports of agents wait for others, to share a transaction


class Report(Protocol):
    @property
    def node(self) -> str: ...


R = TypeVar("R", bound=Report)


class ReportIntake(Generic[R]):
    """One kind of report. ``matters``: whether it says anything new; ``take`` stores it."""

    def __init__(
        self,
        database: Database,
        kind: subjects.ReportKind,
        parse: Callable[[bytes], R],
        matters: Callable[[ReadTx, R], bool],
        take: Callable[[WriteTx, R], object],
    ) -> None:
        self._database, self._kind, self._parse, self._matters, self._take = database, kind, parse, matters, take
        self._batches = Batcher(self._take_all, GATHER_S)
        self._quiet: dict[str, tuple[bytes, float]] = {}  # node -> its last report, not looked at again until

    async def heard(self, message: Message) -> None:
        try:
            report = self._parse(message.data)
            node, _ = subjects.parse_report(message.subject)
        except ValueError as error:
            IGNORED.labels(self._kind).inc()
            log.warning("malformed report ignored", subject=message.subject, error=str(error))
            return
        if report.node != node:
            IGNORED.labels(self._kind).inc()
            log.warning("report in another node's name ignored", subject=message.subject)
            return
        now = self._database.clock.steady()
        quiet = self._quiet.get(node)
        if quiet is not None and quiet[0] == message.data and now < quiet[1]:
            return
        self._quiet[node] = (message.data, now + QUIET_S)
        self._batches.put(report).add_done_callback(partial(self._taken, node))

    async def _take_all(self, reports: list[R]) -> list[None]:
        """Take in the last report of each node; most say nothing new and lock nothing."""
        last = {report.node: report for report in reports}.values()
        news = await self._database.read(lambda tx: [report for report in last if self._matters(tx, report)])
        if news:
            await self._database.write(lambda tx: self._write(tx, news))
        return [None] * len(reports)

    def _write(self, tx: WriteTx, news: list[R]) -> None:
        for report in news:
            self._take(tx, report)

    def _taken(self, node: str, outcome: asyncio.Future[None]) -> None:
        error = None if outcome.cancelled() else outcome.exception()
        if error is not None:
            log.warning("a report is dropped, its agent repeats it", node=node, error=cause_of(error))
            self._quiet.pop(node, None)
