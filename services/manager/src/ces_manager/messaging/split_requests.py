"""What the region's federation service asks this manager about border links and jobs that are split over regions."""

from __future__ import annotations

from ipaddress import IPv4Network

from ces_common import subjects
from ces_common.bus.port import LARGEST_REQUEST, Bus, BusError, RemoteError
from ces_common.fault_points import fault_point
from ces_common.messages.base import Message as Wire
from ces_common.messages.regions import Refusal
from ces_common.messages.split import (
    BorderSetups,
    NearEnds,
    PartAnswer,
    PartCommitQuery,
    PartHoldQuery,
    PartQuery,
    PartReports,
    PartsToAsk,
    SplitDecision,
)
from ces_common.messages.split_queries import SplitAnswer, SplitQuery
from ces_common.queuefile import QueueFile
from ces_manager.database import Database
from ces_manager.messaging.region_requests import serve_region
from ces_manager.network import borders
from ces_manager.regions import parts, splits

PLAN_S = 5.0


class SplitRequests:
    """``block``: of the addresses of this region's workers."""

    def __init__(self, bus: Bus, database: Database, queue: QueueFile, block: IPv4Network) -> None:
        self._bus, self._database, self._queue, self._block = bus, database, queue, block

    async def serve(self) -> None:
        await serve_region(self._bus, "region-borders", BorderSetups, self._borders)
        await serve_region(self._bus, "split-plan", SplitQuery, self._plan)
        await serve_region(self._bus, "split-decide", SplitDecision, self._decide)
        await serve_region(self._bus, "split-open", Wire, self._open)
        await serve_region(self._bus, "split-report", PartReports, self._report)
        await serve_region(self._bus, "part-hold", PartHoldQuery, self._hold)
        await serve_region(self._bus, "part-commit", PartCommitQuery, self._commit)
        await serve_region(self._bus, "part-start", PartQuery, self._start)
        await serve_region(self._bus, "part-release", PartQuery, self._release)
        await serve_region(self._bus, "part-status", PartQuery, self._status)

    async def _borders(self, asked: BorderSetups) -> NearEnds:
        if await self._database.read(lambda tx: borders.differs(tx, asked.items)):
            await self._database.write(lambda tx: borders.put_borders(tx, asked.items), "federation")
        return NearEnds(items=await self._database.read(lambda tx: borders.near_ends(tx, asked.items)))

    async def _plan(self, asked: SplitQuery) -> SplitAnswer:
        """By the scheduler, which alone has the solvers."""
        try:
            raw = await self._bus.request(
                subjects.rpc("scheduler", "split"), asked.encode(), timeout_s=PLAN_S, largest=LARGEST_REQUEST
            )
            return SplitAnswer.model_validate_json(raw)
        except (BusError, ValueError) as error:
            raise RemoteError("unavailable", "the scheduler does not answer") from error

    # at home

    async def _decide(self, decision: SplitDecision) -> Refusal:
        refusal = await self._database.write(lambda tx: splits.decide(tx, decision), "federation")
        fault_point("split-decide")
        return Refusal(refusal=refusal)

    async def _open(self, _: Wire) -> PartsToAsk:
        return PartsToAsk(items=await self._database.read(splits.to_ask))

    async def _report(self, reports: PartReports) -> Refusal:
        news = await self._database.read(lambda tx: splits.has_news(tx, reports.items))
        if news:
            await self._database.write(lambda tx: splits.take_reports(tx, news))
        return Refusal()

    # where a part runs

    async def _hold(self, asked: PartHoldQuery) -> PartAnswer:
        answer = await self._database.write(lambda tx: parts.hold(tx, asked, self._queue), f"region:{asked.home}")
        fault_point("part-hold")
        return answer

    async def _commit(self, asked: PartCommitQuery) -> PartAnswer:
        answer = await self._database.write(lambda tx: parts.commit(tx, asked, self._block), f"region:{asked.home}")
        fault_point("part-commit")
        return answer

    async def _start(self, asked: PartQuery) -> PartAnswer:
        return await self._database.write(lambda tx: parts.start(tx, asked), f"region:{asked.home}")

    async def _release(self, asked: PartQuery) -> PartAnswer:
        return await self._database.write(lambda tx: parts.release(tx, asked), f"region:{asked.home}")

    async def _status(self, asked: PartQuery) -> PartAnswer:
        return await self._database.read(lambda tx: parts.status(tx, asked))
