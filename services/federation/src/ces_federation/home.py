"""This region as a home: its waiting jobs are offered to others, and those that run there are followed.

The steps of one job: *bids* of at most three regions, a *hold* in the best, the *decision*, which this region's manager
writes down, and the *commit*, which is said until it is answered. This service keeps none of it: whenever it starts, it
goes on with what its manager's database says."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog
from prometheus_client import Counter
from pydantic import BaseModel

from ces_common.bus.port import BusError
from ces_common.fault_points import fault_point
from ces_common.messages.base import Message
from ces_common.messages.queries import LogAnswer
from ces_common.messages.regions import (
    HOLD_S,
    MAX_JOBS,
    MAX_SKIPPED,
    SILENT_S,
    AwayJob,
    AwayJobs,
    AwayLogQuery,
    Bid,
    BidAnswer,
    Decision,
    FateAnswer,
    Hold,
    OfferedJob,
    OfferedJobs,
    OffersQuery,
    Refusal,
    RemoteJob,
    RemoteLogQuery,
    RemoteStatus,
    Reported,
    ReportedJobs,
    StatusAnswer,
    StatusQuery,
)
from ces_federation.board import Board
from ces_federation.choice import Backoff, in_order, need_of, worth_asking
from ces_federation.manager_port import Manager
from ces_federation.wire import Wire

log = structlog.get_logger()
OFFERS = Counter("ces_region_offers_total", "Jobs offered to other regions, by what became of it", ["outcome"])
for _outcome in ("placed", "no-region", "no-bid", "not-held", "not-decided", "released", "error"):
    OFFERS.labels(_outcome)
BID_S, HELD_S, WORD_S, LOOK_S = 8.0, 10.0, 3.0, 5.0  # for an answer
STEP_S = 1.0
WORDS_AT_ONCE = 8  # that one region is asked: a quarter of what it answers at once
A = TypeVar("A", bound=BaseModel)


class Home:
    """``clock``: steady. ``split``: called with a job that no region took as a whole."""

    def __init__(
        self,
        manager: Manager,
        wire: Wire,
        board: Board,
        clock: Callable[[], float],
        split: Callable[[OfferedJob], None] = lambda _: None,
    ) -> None:
        self._manager, self._wire, self._board, self._clock = manager, wire, board, clock
        self._split = split
        self._backoff = Backoff()
        self._heard: dict[str, float] = {}  # region -> when it answered last
        self._began = clock()
        self._following: dict[str, asyncio.Task[None]] = {}  # by region

    async def run(self) -> None:
        try:
            await asyncio.gather(self._repeat(self.offer_all), self._repeat(self.follow_all))
        finally:
            await self.close()

    async def close(self) -> None:
        """Follow no region any more."""
        tasks = list(self._following.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _repeat(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except BusError as error:
                log.warning("the manager does not answer", error=str(error))
            await asyncio.sleep(STEP_S)

    # jobs that wait here

    async def offer_all(self) -> None:
        """Offer what may run elsewhere and found no room here. Raises BusError where the manager tells of none."""
        query = OffersQuery(skip=self._backoff.waiting(self._clock())[:MAX_SKIPPED])
        for each in (await self._manager.ask("region-offers", OfferedJobs, query)).items:
            try:
                outcome = await self.offer(each)
            except BusError as error:  # about this job: the others are offered nonetheless
                log.warning("a job cannot be offered", job=each.job, error=str(error)[:200])
                outcome = "error"
            OFFERS.labels(outcome).inc()
            if outcome in ("no-region", "no-bid", "not-held"):
                self._split(each)
            if outcome not in ("placed", "released"):  # that one counts where it is heard
                self._backoff.refused(each.job, self._clock())

    async def offer(self, offered: OfferedJob) -> str:
        """One job; what became of it."""
        asked = worth_asking(need_of(offered.file), self._board.usable(self._clock()))
        if not asked:
            return "no-region"
        answers = await asyncio.gather(
            *(self._ask(name, "bid", Bid(file=offered.file), BidAnswer, BID_S) for name in asked)
        )
        bids = {name: bid for name, bid in zip(asked, answers, strict=True) if bid is not None}
        names = in_order(bids)
        for name in names:
            began = self._clock()
            held = await self._ask(
                name, "hold", Hold(job=offered.job, attempt=offered.attempt, file=offered.file), FateAnswer, HELD_S
            )
            if held is None or held.fate != "held" or held.remote is None:
                continue  # where it is held without our knowing, its hold ends by itself
            fault_point("region-held")
            decision = Decision(job=offered.job, attempt=offered.attempt, region=name, remote=held.remote)
            return await self._decide(decision, self._clock() - began)
        log.info("no region takes a job", job=offered.job, bids={name: bid.refusal for name, bid in bids.items()})
        return "not-held" if names else "no-bid"

    async def _decide(self, decision: Decision, took_s: float) -> str:
        if took_s > HOLD_S:  # it is released by now
            return "not-held"
        refused = (await self._manager.ask("region-decide", Refusal, decision)).refusal
        if refused is None:
            fault_point("region-decided")
            log.info("a job runs elsewhere", job=decision.job, region=decision.region)
            said = await self._follow_region(decision.region, [AwayJob(**decision.model_dump(), wanted="commit")])
            return "released" if any(each.fate == "released" for each in said) else "placed"
        log.info("a job goes nowhere else", job=decision.job, why=refused)
        await self._ask(decision.region, "release", _remote(decision), FateAnswer, WORD_S)
        return "not-decided"

    # jobs that run elsewhere

    async def follow_all(self) -> None:
        """Begin a round with each region where the one before is over: one that is slow delays no other. Raises
        BusError where the manager does not answer."""
        for region, jobs in _by_region((await self._manager.ask("region-away", AwayJobs)).items).items():
            if region not in self._following:
                self._following[region] = asyncio.create_task(self._round(region, jobs))

    async def follow(self, jobs: Sequence[AwayJob]) -> None:
        """Ask what is to be asked of these jobs, and tell the manager what was said."""
        await asyncio.gather(*(self._follow_region(name, some) for name, some in _by_region(jobs).items()))

    async def _round(self, region: str, jobs: Sequence[AwayJob]) -> None:
        try:
            await self._follow_region(region, jobs)
        except Exception:
            log.exception("a region cannot be followed", region=region)
        finally:
            del self._following[region]

    async def _follow_region(self, region: str, jobs: Sequence[AwayJob]) -> list[Reported]:
        """What one region says is reported apart from what others say, lest it spoil theirs."""
        reports = await self._of_region(region, jobs)
        try:
            for start in range(0, len(reports), MAX_JOBS):
                await self._manager.ask("region-report", Refusal, ReportedJobs(items=reports[start : start + MAX_JOBS]))
        except BusError as error:
            log.warning("what a region says is not taken", region=region, error=str(error)[:200])
        return reports

    async def _of_region(self, region: str, jobs: Sequence[AwayJob]) -> list[Reported]:
        """Some words at a time: one that is never answered, though the region is there, holds up no other."""
        answers = await self._statuses(region, [job for job in jobs if job.wanted == "status"])
        words = [job for job in jobs if job.wanted != "status"]
        for start in range(0, len(words), WORDS_AT_ONCE):
            some = words[start : start + WORDS_AT_ONCE]
            said = await asyncio.gather(
                *(self._ask(region, job.wanted, _remote(job), FateAnswer, WORD_S) for job in some)
            )
            if not any(said):  # nor will it answer about the others
                break
            for job, fate in zip(some, said, strict=True):
                if fate is None:
                    continue
                answers[job.job] = (fate, None)
                if job.wanted == "commit":
                    fault_point("region-committed")
                    if fate.fate == "released":
                        self._backoff.refused(job.job, self._clock())
        return [report for job in jobs for report in self._reported(job, answers.get(job.job))]

    async def _statuses(
        self, region: str, jobs: Sequence[AwayJob]
    ) -> dict[str, tuple[FateAnswer, RemoteStatus | None]]:
        found: dict[str, tuple[FateAnswer, RemoteStatus | None]] = {}
        for start in range(0, len(jobs), MAX_JOBS):
            some = jobs[start : start + MAX_JOBS]
            query = StatusQuery(items=[_remote(job) for job in some])
            said = await self._ask(region, "status", query, StatusAnswer, WORD_S)
            if said is None or not len(said.items) == len(said.statuses) == len(some):
                break
            for job, fate, status in zip(some, said.items, said.statuses, strict=True):
                found[job.job] = (fate, status)
        return found

    def _reported(self, job: AwayJob, said: tuple[FateAnswer, RemoteStatus | None] | None) -> list[Reported]:
        """Nothing, where the region has only just fallen silent."""
        about = {**_remote(job).model_dump(), "region": job.region}
        if said is not None:
            return [Reported(**about, fate=said[0].fate, status=said[1])]
        silent_s = self._clock() - self._heard.get(job.region, self._began)
        return [Reported(**about)] if silent_s >= SILENT_S else []

    # what is asked about them

    async def logs(self, asked: AwayLogQuery) -> LogAnswer | None:
        query = RemoteLogQuery(**_remote(asked).model_dump(), task=asked.task, offset=asked.offset, tail=asked.tail)
        return await self._ask(asked.region, "logs", query, LogAnswer, LOOK_S)

    async def flows(self, asked: Decision) -> bytes | None:
        """As that region's manager tells them."""
        try:
            return await self._wire.ask(asked.region, "flows", _remote(asked).encode(), LOOK_S)
        except (BusError, KeyError):
            return None

    async def _ask(self, region: str, operation: str, question: Message, model: type[A], timeout_s: float) -> A | None:
        """None without an answer that can be read, which says nothing of what was done."""
        try:
            raw = await self._wire.ask(region, operation, question.encode(), timeout_s)
            answer = model.model_validate_json(raw)
        except (BusError, ValueError, KeyError) as error:  # KeyError: a region that is trusted no more
            log.info("a region does not answer", region=region, asked=operation, error=str(error)[:200])
            return None
        self._heard[region] = self._clock()
        return answer


def _by_region(jobs: Sequence[AwayJob]) -> dict[str, list[AwayJob]]:
    found: dict[str, list[AwayJob]] = defaultdict(list)
    for job in jobs:
        found[job.region].append(job)
    return found


def _remote(job: RemoteJob) -> RemoteJob:
    return RemoteJob(job=job.job, attempt=job.attempt, remote=job.remote)
