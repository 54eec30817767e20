"""This region as the home of jobs that no region has room for as a whole: it splits them over two.

The steps of one job: the *small problem*, a *hold* of each part in its region, the *decision*, which this region's
manager writes down where every region holds its part, then what that manager says next of each part: its *commit*,
and, once all are committed and ready, its *start*. After any no all is released, and it is tried again a little later;
nobody waits while holding. This service keeps none of it: whenever it starts, it goes on with what its manager says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import structlog
from prometheus_client import Counter

from ces_common.bus.port import BusError
from ces_common.fault_points import fault_point
from ces_common.messages.base import Message
from ces_common.messages.pieces import Piece, Place
from ces_common.messages.regions import HOLD_S, SILENT_S, OfferedJob, Refusal, Totals
from ces_common.messages.split import (
    PartAnswer,
    PartCommit,
    PartHold,
    PartId,
    PartReport,
    PartReports,
    PartState,
    PartsToAsk,
    PartToAsk,
    RemotePart,
    SplitDecision,
)
from ces_common.messages.split_queries import SplitAnswer
from ces_federation.asker import Asker
from ces_federation.board import Board
from ces_federation.choice import Backoff
from ces_federation.manager_port import Manager
from ces_federation.rounds import Rounds, Turns, by_region, repeatedly
from ces_federation.split_choice import candidates, cpu_of, pieces
from ces_federation.split_owner import SplitOwner

log = structlog.get_logger()
SPLITS = Counter("ces_region_splits_total", "Tries to split a job over regions, by what became of it", ["outcome"])
for _outcome in ("placed", "no-split", "not-held", "not-decided", "error"):
    SPLITS.labels(_outcome)
HELD_S = 10.0  # for a place, of regions that answer
ANSWER_S, WORD_S = 1.0, 3.0  # for a word about a hold, and for any other
AGAIN_S = 0.1
FIRST_S, MOST_S = 0.2, 10.0  # between tries
TRIES = 6  # then the job is offered as a whole again
AT_ONCE = 2  # jobs that are being split


class SplitHome:
    """``region``: this one; ``own``: its sums, None where they are not known. ``clock``: steady."""

    def __init__(
        self,
        region: str,
        manager: Manager,
        asker: Asker,
        board: Board,
        owner: SplitOwner,
        own: Callable[[], Totals | None],
        clock: Callable[[], float],
    ) -> None:
        self._region, self._manager, self._asker, self._board = region, manager, asker, board
        self._owner, self._own, self._clock = owner, own, clock
        self._trying: dict[str, asyncio.Task[None]] = {}  # by job
        self._rounds = Rounds()
        self._backoff = Backoff(1.0, 600.0)
        self._turns = Turns[tuple[str, int]](clock)  # of jobs and parts

    async def run(self) -> None:
        try:
            await repeatedly(self.follow_all)
        finally:
            await self.close()

    async def close(self) -> None:
        tasks = list(self._trying.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._rounds.close(), return_exceptions=True)

    # jobs that wait here

    def consider(self, offered: OfferedJob) -> None:
        """Try to split a job that no region took as a whole, beside all else that goes on here; some at a time, and
        not at once again after a try that came to nothing."""
        busy = len(self._trying) >= AT_ONCE or offered.job in self._backoff.waiting(self._clock())
        if offered.job not in self._trying and not busy:
            task = asyncio.create_task(self._try(offered))
            self._trying[offered.job] = task
            task.add_done_callback(lambda _: self._trying.pop(offered.job, None))

    @property
    def trying(self) -> list[str]:
        """Jobs of which parts may be held."""
        return list(self._trying)

    async def _try(self, offered: OfferedJob) -> None:
        outcome = "error"
        try:
            outcome = await self._tries(offered)
        except Exception:
            log.exception("a job cannot be split", job=offered.job)
        if outcome != "placed":
            self._backoff.refused(offered.job, self._clock())

    async def _tries(self, offered: OfferedJob) -> str:
        refused: dict[str, int] = {}
        wait_s, outcome = FIRST_S, "no-split"
        for _ in range(TRIES):
            try:
                outcome = await self.split(offered, refused)
            except BusError as error:
                log.warning("a job cannot be split", job=offered.job, error=str(error)[:200])
                outcome = "error"
            SPLITS.labels(outcome).inc()
            if outcome in ("placed", "not-decided") or (outcome == "no-split" and not refused):
                break
            if outcome == "no-split":  # nor any smaller part: what had no place a moment ago may have one now
                refused.clear()
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # so that two homes do not meet again and again
            wait_s = min(2 * wait_s, MOST_S)
        return outcome

    async def split(self, offered: OfferedJob, refused: dict[str, int]) -> str:
        """One try; what became of it. ``refused``: by region, how large a part it had no place for; added to."""
        wanted = await self._solved(offered, refused)
        if wanted is None:
            return "no-split"
        began = self._clock()
        asked = [
            (region, PartHold(job=offered.job, attempt=offered.attempt, part=i, file=offered.file, piece=piece))
            for i, (region, piece) in enumerate(wanted.items())
        ]
        answers = await asyncio.gather(*(self._hold(region, hold) for region, hold in asked))
        if any(answer is not None and answer.fate == "committed" for answer in answers):
            return "placed"  # before: the answer to that decision was lost
        held = [_is_held(hold, answer) for (_, hold), answer in zip(asked, answers, strict=True)]
        if all(held) and self._clock() - began < HOLD_S:
            fault_point("split-held")
            decision = _decision(offered, asked, answers)
            why = (await self._manager.ask("split-decide", Refusal, decision)).refusal
            if why is None:
                fault_point("split-decided")
                log.info("a job is split", job=offered.job, regions=list(wanted))
                return "placed"
            log.info("a job is not split", job=offered.job, why=why)
        for (region, hold), answer in zip(asked, answers, strict=True):
            if answer is not None and answer.fate == "released":
                refused[region] = min(refused.get(region, 2**62), cpu_of(offered.file, hold.piece))
                log.info("a region has no place for its part", job=offered.job, region=region, why=answer.reason)
        await asyncio.gather(
            *(self._release(region, hold, answer) for (region, hold), answer in zip(asked, answers, strict=True))
        )
        return "not-decided" if all(held) else "not-held"

    async def _solved(self, offered: OfferedJob, refused: Mapping[str, int]) -> dict[str, Piece] | None:
        """The parts of the best split; None where there is none."""
        own, summaries = self._own(), self._board.usable(self._clock())
        if own is None:
            return None
        totals: dict[str, Totals] = {self._region: own, **summaries}
        accepting = [
            name
            for name, each in summaries.items()
            if offered.file.tenant in each.accepts and not self._asker.silent(name)
        ]
        best: SplitAnswer | None = None
        for query in candidates(offered.file, self._region, totals, accepting, refused):
            answer = await self._manager.ask("split-plan", SplitAnswer, query)
            if answer.regions and (best is None or answer.composite > best.composite):
                best = answer
            elif answer.refusal is not None:
                names = [room.name for room in query.regions]
                log.info("no split", job=offered.job, regions=names, why=answer.refusal)
        try:
            return None if best is None else pieces(best)
        except (ValueError, KeyError) as error:
            log.warning("a split makes no sense", job=offered.job, error=str(error))
            return None

    async def _hold(self, region: str, asked: PartHold) -> PartAnswer | None:
        """Ask until the part has its place there, or none; None without an answer."""
        until = self._clock() + HELD_S
        while True:
            answer = await self._hold_once(region, asked)
            if answer is None or answer.fate != "waiting" or self._clock() >= until:
                return answer
            await asyncio.sleep(AGAIN_S)

    async def _hold_once(self, region: str, asked: PartHold) -> PartAnswer | None:
        if region != self._region:
            return await self._asker.ask(region, "part-hold", asked, PartAnswer, ANSWER_S)
        try:
            return await self._owner.hold(region, asked)
        except BusError as error:
            log.warning("the manager does not answer", error=str(error))
            return None

    async def _release(self, region: str, hold: PartHold, answer: PartAnswer | None) -> None:
        """What is held, or may be; where that is not told, its hold ends by itself."""
        if answer is None or answer.remote is None or answer.over or answer.fate == "committed":
            return
        await self._say(region, "release", RemotePart(**_id(hold), remote=answer.remote))

    # jobs that are split

    async def follow_all(self) -> None:
        """Begin a round with each region where the one before is over: one that is slow delays no other. Raises
        BusError."""
        items = (await self._manager.ask("split-open", PartsToAsk)).items
        self._turns.keep({(item.job, item.part) for item in items})
        for region, some in by_region(items).items():
            self._rounds.begin(region, partial(self.follow_region, region, some))

    async def follow_region(self, region: str, items: Sequence[PartToAsk]) -> None:
        """Some at a time, in turn."""
        for some in self._turns.some(items, lambda item: (item.job, item.part)):
            answers = await asyncio.gather(*(self._told(region, item) for item in some))
            reports = [
                PartReport(**_id(item), remote=item.remote, region=region, answer=answer)
                for item, answer in zip(some, answers, strict=True)
                if answer is not None or self._is_silent(region)
            ]
            try:
                if reports:
                    await self._manager.ask("split-report", Refusal, PartReports(items=reports))
            except BusError as error:
                log.warning("what a region says is not taken", region=region, error=str(error)[:200])
            if not any(answers):
                break

    def _is_silent(self, region: str) -> bool:
        return region != self._region and self._asker.silent_s(region) >= SILENT_S

    async def _told(self, region: str, item: PartToAsk) -> PartAnswer | None:
        about = _id(item) | {"remote": item.remote}
        said = PartCommit(**about, places=item.places) if item.word == "commit" else RemotePart(**about)
        answer = await self._say(region, item.word, said)
        if answer is not None and item.word in ("commit", "start"):
            fault_point(f"split-{item.word}")
        return answer

    async def _say(self, region: str, word: str, said: Message) -> PartAnswer | None:
        """None without an answer, which says nothing of what was done."""
        if region != self._region:
            return await self._asker.ask(region, f"part-{word}", said, PartAnswer, WORD_S)
        try:
            return await self._owner.say(region, word, said)
        except (BusError, ValueError) as error:
            log.warning("a part of a job here", word=word, error=str(error)[:200])
            return None


def _id(part: PartId) -> dict[str, object]:
    return {"job": part.job, "attempt": part.attempt, "part": part.part}


def _is_held(hold: PartHold, answer: PartAnswer | None) -> bool:
    """And told as it must be: a place for each of its tasks."""
    if answer is None or answer.fate != "held" or answer.remote is None:
        return False
    return sorted(place.task for place in answer.places) == sorted(hold.piece.tasks)


def _decision(
    offered: OfferedJob, asked: list[tuple[str, PartHold]], answers: list[PartAnswer | None]
) -> SplitDecision:
    parts, places = [], []
    for (region, hold), answer in zip(asked, answers, strict=True):
        assert answer is not None
        parts.append(PartState(**_id(hold), remote=answer.remote, region=region, tasks=hold.piece.tasks))
        places += [Place(**each.model_dump(), region=region) for each in answer.places]
    return SplitDecision(job=offered.job, attempt=offered.attempt, parts=parts, places=places)
