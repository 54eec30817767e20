"""This region as a home: its waiting jobs are offered to others.

The steps of one job: *bids* of at most three regions, a *hold* in the best, the *decision*, which this region's manager
writes down, and the *commit*, which is said until it is answered (``jobs_away``). This service keeps none of it:
whenever it starts, it goes on with what its manager's database says."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import structlog
from prometheus_client import Counter

from ces_common.bus.port import BusError
from ces_common.fault_points import fault_point
from ces_common.messages.regions import (
    HOLD_S,
    MAX_JOBS,
    MAX_SKIPPED,
    AwayJob,
    Bid,
    BidAnswer,
    Decision,
    FateAnswer,
    Hold,
    NotTaken,
    OfferedJob,
    OfferedJobs,
    OffersQuery,
    Refusal,
    RemoteJob,
    TriesAnswer,
    TriesQuery,
)
from ces_common.service import Hint
from ces_federation.asker import Asker
from ces_federation.board import Board
from ces_federation.choice import Backoff, need_of
from ces_federation.chooser import ByRule, Chooser
from ces_federation.jobs_away import JobsAway
from ces_federation.manager_port import Manager

log = structlog.get_logger()
OFFERS = Counter("ces_region_offers_total", "Jobs offered to other regions, by what became of it", ["outcome"])
for _outcome in ("placed", "no-region", "no-bid", "not-held", "not-decided", "released", "error"):
    OFFERS.labels(_outcome)
ANSWER_S = 8.0  # for a bid, and for each word about a hold, of a region that shows that it is at it
OTHERS_S = 1.0  # for other bids, once there is one
HELD_S = 8.0  # for a place
AGAIN_S = 0.1
STEP_S, SOON_S = 1.0, 0.1  # between two looks at what waits: without and with news
AT_ONCE = 4  # jobs that are being offered
CONFLICTS = ("not-held", "not-decided")  # others were quicker: it is tried again soon


class Home:
    """``clock``: steady. ``split``: called with a job that no region took as a whole;
    ``splitting``: those of which parts may be held, and which are not offered meanwhile. ``chooser``: says whom to ask;
    None: the rule does."""

    def __init__(
        self,
        manager: Manager,
        asker: Asker,
        board: Board,
        jobs_away: JobsAway,
        clock: Callable[[], float],
        split: Callable[[OfferedJob], None] = lambda _: None,
        splitting: Callable[[], Iterable[str]] = tuple,
        chooser: Chooser | None = None,
    ) -> None:
        self._manager, self._asker, self._board, self._jobs_away = manager, asker, board, jobs_away
        self._chooser = chooser or ByRule()
        self._clock, self._split, self._splitting = clock, split, splitting
        self._refusals, self._conflicts = Backoff(1.0, 30.0), Backoff(0.2, 10.0)
        self._offering: dict[str, asyncio.Task[None]] = {}  # by job
        self._left: dict[str, set[str]] = defaultdict(set)  # region -> jobs that it may hold for us in vain
        self._beside: set[asyncio.Task[None]] = set()
        self._hint = Hint()
        jobs_away.on_released(lambda job: self._refusals.refused(job, clock()))

    async def run(self) -> None:
        try:
            while True:
                await self.look()
        finally:
            await self.close()

    async def look(self) -> None:
        """Offer what waits; returns when it is time to look again."""
        try:
            await self.offer_all()
        except BusError as error:
            log.warning("the manager does not answer", error=str(error))
        await asyncio.sleep(SOON_S)
        await self._hint.wait(STEP_S - SOON_S)

    async def close(self) -> None:
        """Offer nothing any more. What is held ends by itself."""
        tasks = [*self._offering.values(), *self._beside]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def offer_all(self) -> None:
        """Begin to offer what may run elsewhere and found no room here; one job waits for no other. Raises BusError
        where the manager tells of none."""
        now = self._clock()
        skip = [*self._offering, *self._splitting(), *self._refusals.waiting(now), *self._conflicts.waiting(now)]
        for region, jobs in self._left.items():
            if jobs and not self._asker.silent(region):
                self._start(self._let_go(region))
        if len(self._offering) >= AT_ONCE:
            return
        offered = await self._manager.ask("region-offers", OfferedJobs, OffersQuery(skip=skip[:MAX_SKIPPED]))
        for each in offered.items[: AT_ONCE - len(self._offering)]:
            if each.job not in self._offering:
                self._offering[each.job] = asyncio.create_task(self._offer_one(each))

    async def _offer_one(self, offered: OfferedJob) -> None:
        outcome = "error"
        try:
            outcome = await self.offer(offered)
        except BusError as error:
            log.warning("a job cannot be offered", job=offered.job, error=str(error)[:200])
        except Exception:
            log.exception("a job cannot be offered", job=offered.job)
        finally:
            OFFERS.labels(outcome).inc()
            if outcome in ("no-region", "no-bid"):
                self._split(offered)
            if outcome in CONFLICTS:
                self._conflicts.refused(offered.job, self._clock())
            elif outcome not in ("placed", "released"):  # that one counts where it is heard
                self._refusals.refused(offered.job, self._clock())
            del self._offering[offered.job]
            self._hint.set()

    async def offer(self, offered: OfferedJob) -> str:
        """One job; what became of it."""
        usable = self._board.usable(self._clock())
        heard = {name: each for name, each in usable.items() if not self._asker.silent(name)}
        need = need_of(offered.file)
        chosen = self._chooser.choose(offered.file, need, heard)
        bids = await self._bids(chosen.asked, Bid(file=offered.file))
        why = self._board.why_not(need, self._clock())
        why |= dict.fromkeys(usable.keys() - heard.keys(), "it does not answer")
        why |= {name: _refusal(answer) for name, answer in bids.items() if answer is None or not answer.feasible}
        names = chosen.in_order({name: answer for name, answer in bids.items() if answer is not None})
        for name in names:
            began = self._clock()
            held = await self._hold(name, offered)
            if held is None or held.fate != "held" or held.remote is None:
                why[name] = "it does not answer" if held is None else held.reason or "others were quicker"
                continue
            fault_point("region-held")
            about = {"job": offered.job, "attempt": offered.attempt, "remote": held.remote}
            decision = Decision(**about, region=name, epoch=held.epoch, chosen=chosen.why)
            return await self._decide(decision, self._clock() - began)
        await self._note(offered, why)
        if names:
            return "not-held"
        return "no-bid" if chosen.asked else "no-region"

    async def _bids(self, asked: Sequence[str], bid: Bid) -> dict[str, BidAnswer | None]:
        """None of a region that does not answer in time: the others are not waited for for long once one has room."""
        asking = {name: asyncio.create_task(self._asker.ask(name, "bid", bid, BidAnswer, ANSWER_S)) for name in asked}
        try:
            waiting, left_s = set(asking.values()), None
            while waiting:
                done, waiting = await asyncio.wait(waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    break
                if any(answer is not None and answer.feasible for answer in (task.result() for task in done)):
                    left_s = OTHERS_S
            return {name: task.result() if task.done() else None for name, task in asking.items()}
        finally:
            for task in asking.values():
                task.cancel()

    async def _hold(self, region: str, offered: OfferedJob) -> FateAnswer | None:
        """Ask until the job has its place there, or none; None where the region falls silent. What is held without our
        knowing is let go later, or ends by itself."""
        hold = Hold(job=offered.job, attempt=offered.attempt, file=offered.file)
        until = self._clock() + HELD_S
        while True:
            answer = await self._asker.ask(region, "hold", hold, FateAnswer, ANSWER_S)
            if answer is None:
                self._left[region].add(offered.job)
            if answer is None or answer.fate != "waiting":
                return answer
            if self._clock() >= until:
                if answer.remote is not None:
                    about = RemoteJob(job=offered.job, attempt=offered.attempt, remote=answer.remote)
                    await self._asker.ask(region, "release", about, FateAnswer, ANSWER_S)
                return FateAnswer(fate="released", reason=f"it found no place within {HELD_S:g} s")
            await asyncio.sleep(AGAIN_S)

    async def _let_go(self, region: str) -> None:
        """Have a region that did not answer in time release what it holds nevertheless: others want the room."""
        jobs = sorted(self._left[region] - self._offering.keys() - set(self._splitting()))[:MAX_JOBS]
        if jobs and await self._asker.ask(region, "tries", TriesQuery(jobs=jobs), TriesAnswer, ANSWER_S) is not None:
            self._left[region] -= set(jobs)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _decide(self, decision: Decision, took_s: float) -> str:
        if took_s > HOLD_S:  # it is released by now
            return "not-held"
        refused = (await self._manager.ask("region-decide", Refusal, decision)).refusal
        if refused is None:
            fault_point("region-decided")
            log.info("a job runs elsewhere", job=decision.job, region=decision.region)
            said = await self._jobs_away.tell(AwayJob(**decision.model_dump(), wanted="commit"))
            return "released" if any(each.fate == "released" for each in said) else "placed"
        log.info("a job goes nowhere else", job=decision.job, why=refused)
        remote = RemoteJob(job=decision.job, attempt=decision.attempt, remote=decision.remote)
        await self._asker.ask(decision.region, "release", remote, FateAnswer, ANSWER_S)
        return "not-decided"

    async def _note(self, offered: OfferedJob, why: dict[str, str]) -> None:
        """Have it told beside the reason why the job has no place at home."""
        log.info("no region takes a job", job=offered.job, why=why)
        if offered.not_taken == why:
            return
        said = NotTaken(job=offered.job, attempt=offered.attempt, why=why)
        try:
            await self._manager.ask("region-not-taken", Refusal, said)
        except BusError as error:
            log.warning("why a job was not taken cannot be told", job=offered.job, error=str(error)[:200])


def _refusal(answer: BidAnswer | None) -> str:
    return "it does not answer" if answer is None else answer.refusal or "it has no room"
