"""This region's jobs that run in others: what is said to these, what they say, and what people ask about the jobs."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence

import structlog

from ces_common.bus.port import BusError
from ces_common.fault_points import fault_point
from ces_common.jobfile import ANY_REGION
from ces_common.messages.api import JobFlowsView
from ces_common.messages.queries import LogAnswer
from ces_common.messages.regions import (
    MAX_JOBS,
    SILENT_S,
    AwayJob,
    AwayJobs,
    AwayLogQuery,
    AwayQuery,
    ClearedJobs,
    Decision,
    DoubtfulJob,
    FateAnswer,
    Refusal,
    RemoteJob,
    RemoteLogQuery,
    RemoteStatus,
    Reported,
    ReportedJobs,
    StatusAnswer,
    StatusQuery,
    TriesAnswer,
    TriesQuery,
)
from ces_federation.asking import Asker
from ces_federation.board import Board
from ces_federation.manager_port import Manager

log = structlog.get_logger()
WORD_S, LOOK_S = 3.0, 5.0  # for an answer
STEP_S = 1.0
WORDS_AT_ONCE = 8  # that one region is asked: a quarter of what it answers at once
DOUBTS = "doubts"  # the one who asks about doubtful jobs, beside those who follow a region; no region is called so


class Following:
    """``clock``: steady."""

    def __init__(self, manager: Manager, asker: Asker, board: Board, clock: Callable[[], float]) -> None:
        self._manager, self._asker, self._board, self._clock = manager, asker, board, clock
        self._rounds: dict[str, asyncio.Task[None]] = {}  # by region
        self._asked: dict[str, float] = {}  # job -> when a word about it was said last
        self._released: Callable[[str], None] = lambda _: None

    def on_released(self, tell: Callable[[str], None]) -> None:
        """``tell`` is called with a job whose place was gone at the commit."""
        self._released = tell

    async def run(self) -> None:
        try:
            while True:
                try:
                    await self.follow_all()
                except BusError as error:
                    log.warning("the manager does not answer", error=str(error))
                await asyncio.sleep(STEP_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """Follow no region any more."""
        tasks = list(self._rounds.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def follow_all(self) -> None:
        """Begin a round with each region where the one before is over: one that is slow delays no other. Raises
        BusError where the manager does not answer."""
        away = await self._manager.ask("region-away", AwayJobs, AwayQuery(epochs=self._board.epochs()))
        words = {job.job for job in away.items if job.wanted != "status"}
        self._asked = {job: at for job, at in self._asked.items() if job in words}
        for region, jobs in by_region(away.items).items():
            if region not in self._rounds:
                self._rounds[region] = asyncio.create_task(self._round(region, jobs))
        if away.doubtful and DOUBTS not in self._rounds:
            self._rounds[DOUBTS] = asyncio.create_task(self._clear(away.doubtful))

    async def follow(self, jobs: Sequence[AwayJob]) -> None:
        """Ask what is to be asked of these jobs, and tell the manager what was said."""
        await asyncio.gather(*(self._follow_region(name, some) for name, some in by_region(jobs).items()))

    async def tell(self, job: AwayJob) -> list[Reported]:
        """Say at once what is to be said of one job."""
        return await self._follow_region(job.region, [job])

    async def _round(self, region: str, jobs: Sequence[AwayJob]) -> None:
        try:
            await self._follow_region(region, jobs)
        except Exception:
            log.exception("a region cannot be followed", region=region)
        finally:
            del self._rounds[region]

    async def _follow_region(self, region: str, jobs: Sequence[AwayJob]) -> list[Reported]:
        """What one region says is reported apart from what others say, lest it spoil theirs."""
        statuses, words = await asyncio.gather(
            self._statuses(region, [job for job in jobs if job.wanted == "status"]),
            self._words(region, [job for job in jobs if job.wanted != "status"]),
        )
        answers = statuses | words
        reports = [report for job in jobs for report in self._reported(job, answers.get(job.job))]
        try:
            for start in range(0, len(reports), MAX_JOBS):
                await self._manager.ask("region-report", Refusal, ReportedJobs(items=reports[start : start + MAX_JOBS]))
        except BusError as error:
            log.warning("what a region says is not taken", region=region, error=str(error)[:200])
        return reports

    async def _words(self, region: str, jobs: Sequence[AwayJob]) -> dict[str, tuple[FateAnswer, RemoteStatus | None]]:
        """Some at a time, those first that were not said for longest: one that is never answered, though the region is
        there, holds up no other."""
        found: dict[str, tuple[FateAnswer, RemoteStatus | None]] = {}
        in_turn = sorted(jobs, key=lambda job: self._asked.get(job.job, float("-inf")))
        for start in range(0, len(in_turn), WORDS_AT_ONCE):
            some = in_turn[start : start + WORDS_AT_ONCE]
            self._asked |= {job.job: self._clock() for job in some}
            said = await asyncio.gather(
                *(self._asker.ask(region, job.wanted, remote(job), FateAnswer, WORD_S) for job in some)
            )
            if not any(said):  # nor will it answer about the others now
                break
            for job, fate in zip(some, said, strict=True):
                if fate is None:
                    continue
                found[job.job] = (fate, None)
                if job.wanted == "commit":
                    fault_point("region-committed")
                    if fate.fate == "released":
                        self._released(job.job)
        return found

    async def _statuses(
        self, region: str, jobs: Sequence[AwayJob]
    ) -> dict[str, tuple[FateAnswer, RemoteStatus | None]]:
        found: dict[str, tuple[FateAnswer, RemoteStatus | None]] = {}
        for start in range(0, len(jobs), MAX_JOBS):
            some = jobs[start : start + MAX_JOBS]
            query = StatusQuery(items=[remote(job) for job in some])
            said = await self._asker.ask(region, "status", query, StatusAnswer, WORD_S)
            if said is None or not len(said.items) == len(said.statuses) == len(some):
                break
            for job, fate, status in zip(some, said.items, said.statuses, strict=True):
                found[job.job] = (fate, status)
        return found

    def _reported(self, job: AwayJob, said: tuple[FateAnswer, RemoteStatus | None] | None) -> list[Reported]:
        """Nothing, where the region has only just fallen silent."""
        about = {**remote(job).model_dump(), "region": job.region}
        if said is not None:
            return [Reported(**about, epoch=said[0].epoch, fate=said[0].fate, status=said[1])]
        return [Reported(**about)] if self._asker.silent_s(job.region) >= SILENT_S else []

    # jobs that may have left in what this region's database has lost

    async def _clear(self, doubtful: Sequence[DoubtfulJob]) -> None:
        try:
            await self.clear(doubtful)
        except BusError as error:
            log.warning("what regions say of doubtful jobs is not taken", error=str(error)[:200])
        except Exception:
            log.exception("regions cannot be asked about doubtful jobs")
        finally:
            del self._rounds[DOUBTS]

    async def clear(self, doubtful: Sequence[DoubtfulJob]) -> None:
        """Ask each region to which such jobs may have gone what it has of them. Where one does not answer, they wait:
        silence clears nothing. Raises BusError."""
        asked = {
            name: [each.job for each in doubtful if ANY_REGION in each.regions or name in each.regions]
            for name in self._asker.regions
        }
        said = await asyncio.gather(*(self._tries(name, jobs) for name, jobs in asked.items()))
        found: list[Decision] = []
        unclear = set[str]()
        for (name, jobs), answer in zip(asked.items(), said, strict=True):
            if answer is None:
                unclear |= set(jobs)
                continue
            found += [
                Decision(**each.model_dump(), region=name, epoch=answer.epoch)
                for each in answer.items
                if each.job in jobs
            ]
        cleared = [each.job for each in doubtful if each.job not in unclear]
        if cleared or found:
            log.warning("the database was restored", cleared=len(cleared), elsewhere=len(found), unclear=len(unclear))
            await self._manager.ask("region-cleared", Refusal, ClearedJobs(jobs=cleared, found=found))

    async def _tries(self, region: str, jobs: Sequence[str]) -> TriesAnswer | None:
        if not jobs:
            return TriesAnswer(epoch="")
        return await self._asker.ask(region, "tries", TriesQuery(jobs=list(jobs)), TriesAnswer, WORD_S)

    # what people ask about them

    async def logs(self, asked: AwayLogQuery) -> LogAnswer | None:
        query = RemoteLogQuery(**remote(asked).model_dump(), task=asked.task, offset=asked.offset, tail=asked.tail)
        return await self._asker.look(
            asked.region, lambda: self._asker.ask(asked.region, "logs", query, LogAnswer, LOOK_S)
        )

    async def flows(self, asked: Decision) -> JobFlowsView | None:
        return await self._asker.look(
            asked.region, lambda: self._asker.ask(asked.region, "flows", remote(asked), JobFlowsView, LOOK_S)
        )


def by_region(jobs: Sequence[AwayJob]) -> dict[str, list[AwayJob]]:
    found: dict[str, list[AwayJob]] = defaultdict(list)
    for job in jobs:
        found[job.region].append(job)
    return found


def remote(job: RemoteJob) -> RemoteJob:
    return RemoteJob(job=job.job, attempt=job.attempt, remote=job.remote)
