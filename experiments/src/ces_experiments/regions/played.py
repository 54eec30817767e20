"""What stands around the federation's own code in a run: managers with books of their own, and the wire. What jobs
come to is written down.

The answers are those of the manager's own ``regions`` package, without its database: nothing dies here, so that nothing
has to be remembered beyond a death.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel
from ulid import ULID

from ces_common import subjects
from ces_common.bus.port import BusError, RemoteError, RequestTimeout
from ces_common.messages.base import Message
from ces_common.messages.regions import (
    HOLD_S,
    AwayJobs,
    BidAnswer,
    Decision,
    FateAnswer,
    GuestFile,
    GuestJobQuery,
    HoldQuery,
    OfferedJob,
    OfferedJobs,
    OffersQuery,
    Refusal,
    TriesAnswer,
)
from ces_experiments.regions.books import Books
from ces_experiments.regions.drawn import HomedJob
from ces_federation.asker import Asker
from ces_federation.board import Board
from ces_federation.chooser import Chooser
from ces_federation.home import Home
from ces_federation.jobs_away import JobsAway
from ces_federation.manager_port import Manager
from ces_federation.seals import key_of, seal
from ces_federation.wire import ANSWER, Handler, Wire

A = TypeVar("A", bound=BaseModel)
ANSWER_S = 0.02
"""How long a manager takes to answer another region: a transaction, or a dry run of milliseconds."""
OFFERED_AT_ONCE = 5
"""Jobs that a manager offers to its federation service at a time."""
ID = str(ULID())
SEALED = len(seal(key_of("any"), "any", b"", 0.0))
"""Bytes that a seal adds to a message."""


@dataclass
class Course:
    """What became of a job. ``work``: what it asks for, in cores times seconds. ``region``: where it ran."""

    home: str
    arrival_s: float
    work: float
    region: str | None = None
    started_s: float | None = None
    ended_s: float | None = None
    satisfaction: float = 0.0


@dataclass
class Tally:
    """``messages``, and their ``sizes`` in bytes: by operation, answers as ``answer to bid``. ``offers``: what became
    of each offer of a job to other regions, and how long that took. ``holds``: by answer."""

    messages: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    offers: list[tuple[str, float]] = field(default_factory=list)
    holds: Counter[str] = field(default_factory=Counter)

    def sent(self, what: str, subject: str, data: bytes) -> None:
        self.messages[what] += 1
        self.sizes[what] += len(subject) + SEALED + len(data)


@dataclass
class Guest:
    job: HomedJob
    remote: str
    satisfaction: float | None = None  # once it has a place
    committed: bool = False


class PlayedManager(Manager):
    """Of one region. ``jobs``: of all regions, by name. ``over``: called when one has started, or has given up.
    ``changed``: called whenever there is more or less free, or to do. ``waits`` is set while own jobs do."""

    def __init__(
        self,
        region: str,
        books: Books,
        jobs: Mapping[str, HomedJob],
        courses: Mapping[str, Course],
        tally: Tally,
        over: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self._region, self._books, self._jobs, self._courses = region, books, jobs, courses
        self._tally, self._over, self._changed = tally, over, changed
        self._loop = asyncio.get_running_loop()
        self.waits = asyncio.Event()
        self._guests: dict[str, Guest] = {}
        self._answers: dict[str, Callable[[Any], Message]] = {
            "region-offers": self._offers,
            "region-decide": self._decide,
            "region-away": lambda _: AwayJobs(),  # who asks for its jobs elsewhere is only counted
            "region-report": lambda _: Refusal(),
            "region-not-taken": lambda _: Refusal(),
            "region-tries": lambda _: TriesAnswer(epoch=""),
            "region-bid": self._bid,
            "region-hold": self._hold,
            "region-commit": self._commit,
            "region-release": self._release,
        }

    # its own jobs

    def submit(self, job: HomedJob, patience_s: float) -> None:
        self._books.wait(job.timed.name, job.timed)
        self._loop.call_later(patience_s, self._give_up, job.timed.name)
        self._serve()

    def _give_up(self, name: str) -> None:
        if name in self._books.waiting:
            self._books.leave(name)
            self._tell()
            self._over()

    def _serve(self) -> None:
        for key, satisfaction in self._books.serve().items():
            guest = self._guests.get(key)
            if guest is None:
                self._start(key, self._jobs[key], satisfaction)
            else:
                guest.satisfaction = satisfaction
                self._loop.call_later(HOLD_S, self._end_hold, key)
        self._tell()

    def _start(self, key: str, job: HomedJob, satisfaction: float) -> None:
        course = self._courses[job.timed.name]
        course.region, course.started_s, course.satisfaction = self._region, self._loop.time(), satisfaction
        course.ended_s = course.started_s + job.timed.duration_s
        self._loop.call_later(job.timed.duration_s, self._end, key)
        self._over()

    def _end(self, key: str) -> None:
        self._books.release(key)
        self._serve()

    def _tell(self) -> None:
        if any(name in self._courses for name in self._books.waiting):
            self.waits.set()
        else:
            self.waits.clear()
        self._changed()

    # what its federation service asks

    async def ask(self, operation: str, model: type[A], question: Message | None = None) -> A:
        if operation not in self._answers:
            raise RemoteError("unknown", f"no manager is asked {operation} in a simulation")
        if isinstance(question, GuestFile | GuestJobQuery):
            await asyncio.sleep(ANSWER_S)
        answer = self._answers[operation](question)
        assert isinstance(answer, model)
        return answer

    def _offers(self, asked: OffersQuery) -> OfferedJobs:
        own = [name for name in self._books.waiting if name in self._courses and name not in set(asked.skip)]
        files = [(name, self._jobs[name].file) for name in own[:OFFERED_AT_ONCE]]
        return OfferedJobs.model_construct(
            items=[OfferedJob.model_construct(job=name, attempt=1, file=file) for name, file in files]
        )

    def _decide(self, decision: Decision) -> Refusal:
        if decision.job not in self._books.waiting:
            return Refusal(refusal="it waits no more")
        self._books.leave(decision.job)
        self._tell()
        return Refusal()

    # what other regions ask

    def _bid(self, asked: GuestFile) -> BidAnswer:
        found = self._books.look(self._jobs[asked.file.name].timed)
        if found is None:
            return BidAnswer(refusal="no room")
        return BidAnswer(feasible=True, composite=found.composite)

    def _hold(self, asked: HoldQuery) -> FateAnswer:
        """As the real one: at first it is submitted, and how it stands is said when it is asked again."""
        key = f"{asked.home}/{asked.job}"
        guest = self._guests.get(key)
        if guest is None:
            guest = self._guests[key] = Guest(self._jobs[asked.job], f"{len(self._guests):026}")
            self._books.wait(key, guest.job.timed)
            self._serve()
            return FateAnswer(fate="waiting", remote=guest.remote)
        if guest.satisfaction is not None:
            self._tally.holds["held"] += 1
            return FateAnswer(fate="held", remote=guest.remote)
        self._tally.holds["refused"] += 1
        del self._guests[key]
        self._books.leave(key)
        self._tell()
        return FateAnswer(fate="released", remote=guest.remote)

    def _commit(self, asked: GuestJobQuery) -> FateAnswer:
        key = f"{asked.home}/{asked.job}"
        guest = self._guests.get(key)
        if guest is None or guest.satisfaction is None:
            return FateAnswer(fate="released")
        if not guest.committed:
            guest.committed = True
            self._start(key, guest.job, guest.satisfaction)
        return FateAnswer(fate="committed", remote=guest.remote)

    def _release(self, asked: GuestJobQuery) -> FateAnswer:
        key = f"{asked.home}/{asked.job}"
        if key not in self._guests:
            return FateAnswer(fate="unknown")
        self._end_hold(key)
        return FateAnswer(fate="released")

    def _end_hold(self, key: str) -> None:
        guest = self._guests.get(key)
        if guest is not None and not guest.committed:
            del self._guests[key]
            self._books.release(key)
            self._serve()


class PlayedWire(Wire):
    """Of one region; ``regions``: all of them. ``delay_s``: from one to another, one way."""

    def __init__(self, region: str, regions: dict[str, PlayedWire], delay_s: float, tally: Tally) -> None:
        self._region, self._regions, self._delay_s, self._tally = region, regions, delay_s, tally
        self._handlers: dict[str, Handler] = {}
        self._heard_of: Counter[str] = Counter()
        regions[region] = self

    async def ask(self, region: str, operation: str, data: bytes, timeout_s: float = 2.0) -> bytes:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(region, operation, data)
        except TimeoutError:
            raise RequestTimeout(f"region {region} did not answer within {timeout_s:g} s") from None

    async def _exchange(self, region: str, operation: str, data: bytes) -> bytes:
        self._tally.sent(operation, subjects.between_regions(region, self._region, operation, ID), data)
        await asyncio.sleep(self._delay_s)
        answer = await self._answered(self._regions[region]._handlers[operation](self._region, data))
        to = subjects.between_regions(self._region, region, ANSWER, ID)
        self._tally.sent(f"answer to {operation}", to, answer)
        await asyncio.sleep(self._delay_s)
        self._heard_of[region] += 1
        return answer

    @staticmethod
    async def _answered(answer: Awaitable[bytes]) -> bytes:
        """Without end, where there is no answer."""
        try:
            return await answer
        except (BusError, ValueError):
            return await asyncio.Future[bytes]()


class TimedHome(Home):
    """Tells the tally of each offer."""

    def __init__(
        self,
        manager: Manager,
        asker: Asker,
        board: Board,
        clock: Callable[[], float],
        tally: Tally,
        chooser: Chooser,
    ) -> None:
        super().__init__(manager, asker, board, JobsAway(manager, asker, board, clock), clock, chooser=chooser)
        self._now, self._told = clock, tally

    async def offer(self, offered: OfferedJob) -> str:
        began = self._now()
        outcome = await super().offer(offered)
        self._told.offers.append((outcome, self._now() - began))
        return outcome
