"""What the region's federation service asks this manager over the bus, and has it do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from pydantic import BaseModel
from sqlalchemy import select

from ces_common import subjects
from ces_common.bus.port import LARGEST_REQUEST, Bus, BusError, Message, RemoteError
from ces_common.db.tables import AllocationRow, JobRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.fault_points import fault_point
from ces_common.messages.agent_queries import LogAnswer, LogQuery
from ces_common.messages.base import Message as Wire
from ces_common.messages.queries import PlanAnswer, PlanQuery
from ces_common.messages.regions import (
    AwayJobs,
    AwayQuery,
    BidAnswer,
    ClearedJobs,
    Decision,
    FateAnswer,
    GuestFile,
    GuestJobQuery,
    GuestLogQuery,
    GuestStatusQuery,
    GuestTriesQuery,
    HoldQuery,
    NotTaken,
    OfferedJobs,
    OffersQuery,
    Refusal,
    ReportedJobs,
    StatusAnswer,
    TriesAnswer,
)
from ces_common.queuefile import QueueFile
from ces_manager.database import Database
from ces_manager.errors import ManagerError
from ces_manager.jobs.doubts import doubtful_jobs
from ces_manager.measurements import Measurements
from ces_manager.messaging.answers import answering, problem_of
from ces_manager.network.flow_rates import job_flows_view
from ces_manager.queue.live import LiveQueue
from ces_manager.regions import away, guests, parts, restoration
from ces_manager.regions.totals import totals

log = structlog.get_logger()
QUEUE = "manager"
PLAN_S = 5.0  # that a dry run for another region may take
LOG_S = 5.0
LOG_PART = 64 * 1024  # bytes of a log in one answer: as JSON it may take six times that
LARGEST = 3 * 1024 * 1024  # bytes of one request, which may hold a job file
M = TypeVar("M", bound=BaseModel)
Act = Callable[[M], Awaitable[Wire]]


class RegionRequests:
    def __init__(
        self, bus: Bus, database: Database, live_queue: LiveQueue, queue: QueueFile, measurements: Measurements
    ) -> None:
        self._bus, self._database, self._live_queue = bus, database, live_queue
        self._queue, self._measurements = queue, measurements

    async def serve(self) -> None:
        await self._bus.serve(subjects.rpc("manager", "region-totals"), self._totals, largest=0, queue=QUEUE)
        await self._on("region-offers", OffersQuery, self._offers)
        await self._on("region-decide", Decision, self._decide)
        await self._on("region-not-taken", NotTaken, self._not_taken)
        await self._on("region-away", AwayQuery, self._away)
        await self._on("region-cleared", ClearedJobs, self._cleared)
        await self._on("region-report", ReportedJobs, self._report)
        await self._on("region-bid", GuestFile, self._bid)
        await self._on("region-hold", HoldQuery, self._hold)
        await self._on("region-commit", GuestJobQuery, self._commit)
        await self._on("region-release", GuestJobQuery, self._release)
        await self._on("region-status", GuestStatusQuery, self._status)
        await self._on("region-tries", GuestTriesQuery, self._tries)
        await self._on("region-logs", GuestLogQuery, self._logs)
        await self._on("region-flows", GuestJobQuery, self._flows)

    async def _on(self, operation: str, model: type[M], act: Act[M]) -> None:
        await serve_region(self._bus, operation, model, act)

    async def _totals(self, _: Message) -> bytes:
        report, now = await self._live_queue.look(), self._database.clock.now()
        with answering("totals"):
            return (await self._database.read(lambda tx: totals(tx, report.statuses, now))).encode()

    # at home

    async def _offers(self, asked: OffersQuery) -> OfferedJobs:
        return OfferedJobs(items=await self._database.read(lambda tx: away.offered_jobs(tx, asked.skip)))

    async def _decide(self, decision: Decision) -> Refusal:
        actor = f"region:{decision.region}"
        refusal = await self._database.write(lambda tx: away.decide(tx, decision), actor)
        fault_point("region-decide")
        return Refusal(refusal=refusal)

    async def _not_taken(self, said: NotTaken) -> Refusal:
        await self._database.write(lambda tx: away.note_not_taken(tx, said))
        return Refusal()

    async def _away(self, asked: AwayQuery) -> AwayJobs:
        return await self._database.read(
            lambda tx: AwayJobs(items=away.open_jobs(tx, asked.epochs), doubtful=doubtful_jobs(tx, asked.doubted))
        )

    async def _cleared(self, said: ClearedJobs) -> Refusal:
        await self._database.write(lambda tx: restoration.clear(tx, said))
        return Refusal()

    async def _report(self, reported: ReportedJobs) -> Refusal:
        news = await self._database.read(lambda tx: away.has_news(tx, reported.items))
        if news:
            await self._database.write(lambda tx: away.take_reports(tx, news))
        return Refusal()

    # where jobs of others run

    async def _bid(self, asked: GuestFile) -> BidAnswer:
        """The ordinary dry run, for another region's job."""
        file = await self._database.read(lambda tx: guests.check_admissible(tx, asked, self._queue))
        try:
            raw = await self._bus.request(
                subjects.rpc("scheduler", "plan"), PlanQuery(job=file).encode(), timeout_s=PLAN_S
            )
            answer = PlanAnswer.model_validate_json(raw)
        except (BusError, ValueError) as error:
            raise RemoteError("unavailable", "the scheduler does not answer") from error
        return BidAnswer(
            feasible=answer.feasible,
            composite=min(max(answer.metrics.get("composite", 0.0), 0.0), 1.0),
            refusal=None if answer.reason is None else answer.reason.text,
        )

    async def _hold(self, asked: HoldQuery) -> Wire:
        answer = await self._answer(asked.home, lambda tx: guests.hold(tx, asked, self._queue))
        fault_point("region-hold")
        return answer

    async def _commit(self, asked: GuestJobQuery) -> Wire:
        answer = await self._answer(asked.home, lambda tx: guests.commit(tx, asked))
        fault_point("region-commit")
        return answer

    async def _release(self, asked: GuestJobQuery) -> Wire:
        return await self._answer(asked.home, lambda tx: guests.release(tx, asked))

    async def _answer(self, home: str, act: Callable[[WriteTx], FateAnswer]) -> FateAnswer:
        """With the epoch of the database that says so."""

        def of_epoch(tx: WriteTx) -> FateAnswer:
            return act(tx).model_copy(update={"epoch": tx.cluster().epoch})

        return await self._database.write(of_epoch, f"region:{home}")

    async def _status(self, asked: GuestStatusQuery) -> StatusAnswer:
        found, epoch = await self._database.read(
            lambda tx: (guests.statuses(tx, asked.home, asked.items), tx.cluster().epoch)
        )
        fates = [fate.model_copy(update={"epoch": epoch}) for fate, _ in found]
        return StatusAnswer(items=fates, statuses=[status for _, status in found])

    async def _tries(self, asked: GuestTriesQuery) -> TriesAnswer:
        def tries(tx: WriteTx) -> TriesAnswer:
            whole, split = guests.tries(tx, asked.home, asked.jobs), parts.tries(tx, asked.home, asked.jobs)
            return TriesAnswer(epoch=tx.cluster().epoch, items=whole, parts=split)

        return await self._database.write(tries, f"region:{asked.home}")

    async def _logs(self, asked: GuestLogQuery) -> LogAnswer:
        place = await self._database.read(lambda tx: _place_of(tx, guests.guest_job(tx, asked), asked.task))
        if place is None:
            return LogAnswer(found=False)
        node, allocation = place
        query = LogQuery(allocation=allocation, offset=asked.offset, tail=asked.tail, limit=LOG_PART)
        raw = await self._bus.request(
            subjects.agent_rpc(node, "logs"), query.encode(), timeout_s=LOG_S, largest=LARGEST_REQUEST
        )
        try:
            return LogAnswer.model_validate_json(raw)
        except ValueError as error:
            raise RemoteError("malformed", "the node answers with what is no log") from error

    async def _flows(self, asked: GuestJobQuery) -> Wire:
        """Without paths: which nodes and links there are is the region's own business."""
        now = self._database.clock.now()
        view = await self._database.read(
            lambda tx: job_flows_view(tx, guests.guest_job(tx, asked), self._measurements, now)
        )
        bare = [flow.model_copy(update={"path": [], "hops": [], "shortfall": None}) for flow in view.flows]
        return view.model_copy(update={"id": asked.job, "flows": bare})


async def serve_region(bus: Bus, operation: str, model: type[M], act: Act[M]) -> None:
    """Answer the federation service; what the manager refuses it is told in words."""

    async def answer(message: Message) -> bytes:
        try:
            asked = model.model_validate_json(message.data or b"{}")
        except ValueError as error:
            raise RemoteError("malformed", problem_of(error)) from error
        with answering(operation):
            try:
                return (await act(asked)).encode()
            except ManagerError as error:
                raise RemoteError("refused", error.detail) from error

    await bus.serve(subjects.rpc("manager", operation), answer, largest=LARGEST, queue=QUEUE)


def _place_of(tx: ReadTx, job: str, task: str) -> tuple[str, str] | None:
    """Node and allocation of a task in the present attempt."""
    query = (
        select(AllocationRow.node, AllocationRow.id)
        .join(JobRow, (JobRow.id == AllocationRow.job) & (JobRow.attempt == AllocationRow.attempt))
        .where(AllocationRow.job == job, AllocationRow.task == task)
    )
    row = tx.session.execute(query).one_or_none()
    return None if row is None else (row.node, row.id)
