"""Intake of workers' progress. A node is believed only about tasks that it has or had, and only at a limited rate for
each node and each worker; anything else is counted as ignored."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy import select

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.db import UNAVAILABLE, ReadTx, cause_of
from ces_common.db.tables import AllocationRow, JobRow
from ces_common.messages.reports import Progress
from ces_common.rates import SenderRate
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.measurements import Measurements
from ces_manager.messaging.report_intake import IGNORED

log = structlog.get_logger()
LARGEST = 64 * 1024  # bytes; agents pass on lines of at most 16 KiB, which may grow when encoded
PER_S, BURST = 500.0, 5000  # of all of a node's workers
WORKER_PER_S, WORKER_BURST = 5.0, 20  # of one worker, of which an agent tells twice a second
UNKNOWN_PER_S, UNKNOWN_BURST = 10.0, 512  # looks into the database because of one node
MOST_KNOWN = 65536  # allocations


@dataclass(frozen=True, slots=True)
class Whose:
    """The owner of an allocation. ``leads``: its task is the first of a malleable job, by whose steps the job's speed
    is measured."""

    node: str
    job: str
    task: str
    leads: bool


class ProgressIntake:
    """Passes what it believes on to measurements, to the measured speed of malleable jobs, and to whoever follows the
    job live."""

    def __init__(self, database: Database, measurements: Measurements, broadcast: Broadcast) -> None:
        self._database, self._measurements, self._broadcast = database, measurements, broadcast
        self._of_node, self._of_worker = SenderRate(PER_S, BURST), SenderRate(WORKER_PER_S, WORKER_BURST)
        self._looks = SenderRate(UNKNOWN_PER_S, UNKNOWN_BURST)
        self._known: dict[str, Whose] = {}  # allocation -> whose it is, which never changes

    async def heard(self, message: Message) -> None:
        now = self._database.clock.steady()
        try:
            if len(message.data) > LARGEST:
                raise ValueError(f"{len(message.data)} bytes are no line of progress")
            node, _ = subjects.parse_report(message.subject)
            if not self._of_node.allows(node, now):
                raise ValueError("too much progress of one node at once")
            progress = Progress.model_validate_json(message.data)
            whose = await self._whose(progress, now) if progress.node == node else None
            if whose is None:
                raise ValueError("progress in another's name")
            if not self._of_worker.allows(progress.allocation, now):
                raise ValueError("too much progress of one worker at once")
        except ValueError:
            IGNORED.labels("progress").inc()
            return
        self._measurements.progressed(progress, self._database.clock.now())
        if whose.leads:
            self._measurements.speeds.heard(progress, now)
        self._broadcast.progress(progress)

    async def _whose(self, progress: Progress, now: float) -> Whose | None:
        """None where it is not the node's own. Raises BadName for what can be no allocation."""
        known = self._known.get(progress.allocation)
        if known is None:
            subjects.token(progress.allocation, "allocation")
            if not self._looks.allows(progress.node, now):
                return None
            try:
                known = await self._database.read(lambda tx: _owner(tx, progress.allocation))
            except UNAVAILABLE as error:
                log.info("progress is dropped: the database does not answer", error=cause_of(error))
                return None
            if known is None:
                return None
            if len(self._known) >= MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[progress.allocation] = known
        own = (known.node, known.job, known.task) == (progress.node, progress.job, progress.task)
        return known if own else None


def _owner(tx: ReadTx, allocation: str) -> Whose | None:
    of = AllocationRow
    query = select(of.node, of.job, of.task, of.rank, JobRow.size).join(JobRow, JobRow.id == of.job)
    row = tx.session.execute(query.where(of.id == allocation)).one_or_none()
    return None if row is None else Whose(row.node, row.job, row.task, row.rank == 0 and row.size is not None)
