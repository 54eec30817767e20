"""This region's jobs that run in others: what is said to these, what they say, and what people ask about the jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from ces_common.bus.port import BusError
from ces_common.fault_points import fault_point
from ces_common.jobfile import ANY_REGION
from ces_common.messages.agent_queries import LogAnswer
from ces_common.messages.api import JobFlowsView
from ces_common.messages.regions import (
    MAX_FOUND,
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
    FoundPart,
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
from ces_federation.asker import Asker
from ces_federation.board import Board
from ces_federation.manager_port import Manager
from ces_federation.rounds import Rounds, Turns, by_region, repeatedly

log = structlog.get_logger()
WORD_S, LOOK_S = 3.0, 5.0  # for an answer
DOUBTS = "doubts"  # the one who asks about doubtful jobs, beside those who follow a region; no region is called so


class JobsAway:
    """``clock``: steady."""

    def __init__(self, manager: Manager, asker: Asker, board: Board, clock: Callable[[], float]) -> None:
        self._manager, self._asker, self._board, self._clock = manager, asker, board, clock
        self.rounds = Rounds()
        self._turns = Turns[str](clock)  # of jobs
        self._doubted = ""  # the last doubtful job that regions were asked about
        self._released: Callable[[str], None] = lambda _: None

    def on_released(self, tell: Callable[[str], None]) -> None:
        """``tell`` is called with a job whose place was gone at the commit."""
        self._released = tell

    async def run(self) -> None:
        try:
            await repeatedly(self.follow_all)
        finally:
            await self.close()

    async def close(self) -> None:
        """Follow no region any more."""
        await self.rounds.close()

    async def follow_all(self) -> None:
        """Begin a round with each region where the one before is over: one that is slow delays no other. Raises
        BusError where the manager does not answer."""
        asked = AwayQuery(epochs=self._board.epochs(), doubted=self._doubted)
        away = await self._manager.ask("region-away", AwayJobs, asked)
        self._turns.keep({job.job for job in away.items if job.wanted != "status"})
        for region, jobs in by_region(away.items).items():
            self.rounds.begin(region, partial(self._follow_region, region, jobs))
        if away.doubtful and DOUBTS not in self.rounds:
            self._doubted = away.doubtful[-1].job
            self.rounds.begin(DOUBTS, partial(self._clear, away.doubtful))

    async def tell(self, job: AwayJob) -> list[Reported]:
        """Say at once what is to be said of one job."""
        return await self._follow_region(job.region, [job])

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
        """Some at a time, in turn."""
        found: dict[str, tuple[FateAnswer, RemoteStatus | None]] = {}
        for some in self._turns.some(jobs, lambda job: job.job):
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

    async def clear(self, doubtful: Sequence[DoubtfulJob]) -> None:
        """Ask each region to which such jobs may have gone what it has of them. Where one does not answer, they wait:
        silence clears nothing. Raises BusError."""
        asked = {
            name: [each.job for each in doubtful if ANY_REGION in each.regions or name in each.regions]
            for name in self._asker.regions
        }
        said = await asyncio.gather(*(self._tries(name, jobs) for name, jobs in asked.items()))
        found: list[Decision] = []
        parts: list[FoundPart] = []
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
            parts += [FoundPart(**each.model_dump(), region=name) for each in answer.parts if each.job in jobs]
        cleared = [each.job for each in doubtful if each.job not in unclear]
        if cleared or found or parts:
            elsewhere = len(found) + len(parts)
            log.warning("the database was restored", cleared=len(cleared), elsewhere=elsewhere, unclear=len(unclear))
            said_of = ClearedJobs(jobs=cleared, found=found[:MAX_FOUND], parts=parts[:MAX_FOUND])
            await self._manager.ask("region-cleared", Refusal, said_of)

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


def remote(job: RemoteJob) -> RemoteJob:
    return RemoteJob(job=job.job, attempt=job.attempt, remote=job.remote)
