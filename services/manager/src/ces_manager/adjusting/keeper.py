"""Looks at applications that CES may change by itself, whenever something calls for it, and carries out what is worth
it. Never by a timer alone: where nothing has changed and deadlines are kept, nothing is asked.

What calls for a look is taken in every second; the looks follow one after the other beside that."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import structlog

from ces_common.bus.port import Bus, BusError
from ces_common.db import UNAVAILABLE, WriteTx, cause_of
from ces_common.db.move_tables import LastLookRow
from ces_common.db.tables import JobRow
from ces_manager.adjusting.deadline_windows import MISSED_RUNNING, WINDOW_S, Counts, DeadlineWindows, counts_of
from ces_manager.adjusting.look import Again, Look, Outcome
from ces_manager.adjusting.past_moves import left_of, past_moves
from ces_manager.adjusting.seen_jobs import Scene, Watched, scene_of
from ces_manager.adjusting.surroundings import Seen, news
from ces_manager.database import Database
from ces_manager.errors import Conflict, Invalid, ManagerError, NotFound
from ces_manager.measurements import Measurements
from ces_manager.plans.proposal import Stale
from ces_manager.text import storable

log = structlog.get_logger()
LOOK_S = 1.0
RETRY_S = 5.0
"""After which a look that came to nothing is held again, the first time; then twice as long, and so on."""
TRIES = 4
LEAST_S = 10.0
"""Between two looks at one application: links may flap, and its own word may call for a look."""
MOST_S = 600.0
"""Between two looks for the same reason that come to the same."""
MOST_TEXT = 500  # characters
MOST_WHY = 20
ALLOWED = "the terms may allow now what they forbade"
BEGUN = "it has begun to run, or to be followed by this manager"


@dataclass
class _Followed:
    """An application from look to look. ``why``: what calls for a look that it has not had; ``due``: when it may be;
    ``tried``: how often that one had to be put off, ``refused``: and how often for what the job or the cluster is.
    ``former``: what the last one was held for; ``outcome``: what came of it, at ``looked``; ``again_at``: when the
    terms allow what they may have forbidden."""

    seen: Seen
    why: list[str] = field(default_factory=lambda: [BEGUN])
    due: float = -math.inf
    tried: int = 0
    refused: int = 0
    windows: DeadlineWindows = field(default_factory=DeadlineWindows)
    former: frozenset[str] = frozenset()
    outcome: str = ""
    rest_s: float = LEAST_S
    looked: float = -math.inf
    again_at: float = math.inf

    def see(self, watched: Watched) -> list[str]:
        """What is news. While a task moves, its job's place is compared with nothing: it may come back."""
        place = watched.seen.place if watched.still else self.seen.place
        now = Seen(watched.seen.around, place)
        found, self.seen = news(self.seen, now), now
        return found

    def add(self, found: list[str]) -> None:
        """What the last look was not held for need not wait longer than any."""
        fresh = [why for why in found if why not in self.why]
        self.why = (self.why + fresh)[-MOST_WHY:]
        if not self.tried and not self.former.issuperset(fresh):
            self.due = min(self.due, self.looked + LEAST_S)

    def take(self) -> list[str]:
        """What the look that begins is held for; what comes meanwhile calls for another one."""
        causes, self.why = self.why, []
        return causes

    def put_off(self, causes: list[str], now: float) -> None:
        self.tried += 1
        self.why = list(dict.fromkeys(causes + self.why))[-MOST_WHY:]
        self.due = now + RETRY_S * 2 ** min(self.tried - 1, TRIES)

    def settle(self, causes: list[str], outcome: Outcome, now: float) -> None:
        same = (self.former, self.outcome) == (frozenset(causes), outcome.text)
        self.rest_s = min(MOST_S, 2 * self.rest_s) if same else LEAST_S
        self.former, self.outcome, self.looked = frozenset(causes), outcome.text, now
        self.tried = self.refused = 0
        self.due = now + (self.rest_s if self.former.issuperset(self.why) else LEAST_S)
        self.again_at = math.inf if outcome.again_in_s is None else now + outcome.again_in_s


class SelfAdjuster:
    """``holds``: whether this manager is the one that does it. One that has just taken it over looks at each once,
    since it knows of no change before."""

    def __init__(self, database: Database, bus: Bus, measurements: Measurements, holds: Callable[[], bool]) -> None:
        self._database, self._measurements, self._holds = database, measurements, holds
        self._look = Look(database, bus, holds)
        self._scene: Scene | None = None
        self._followed: dict[str, _Followed] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as both:
            both.create_task(self._again_and_again(self.take_in))
            both.create_task(self._again_and_again(self.look))

    async def _again_and_again(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await step()
            except UNAVAILABLE as error:
                log.warning("the database does not answer", error=cause_of(error))
            await asyncio.sleep(LOOK_S)

    async def take_in(self) -> None:
        """See what has changed."""
        if not self._holds():
            self._scene = None
            self._followed.clear()
            return
        former = self._scene
        self._scene = await self._database.read(lambda tx: scene_of(tx, former))
        jobs, now = self._scene.jobs, self._database.clock.steady()
        self._followed = {job: kept for job, kept in self._followed.items() if job in jobs}
        for job, watched in jobs.items():
            kept = self._followed.setdefault(job, _Followed(watched.seen))
            found = kept.see(watched) + self._missed(watched, kept.windows, now)
            if now >= kept.again_at:
                found.append(ALLOWED)
                kept.again_at = math.inf
            kept.add(found)

    def _missed(self, watched: Watched, windows: DeadlineWindows, now: float) -> list[str]:
        counts: dict[str, Counts] = {}
        for node, allocation in watched.senders:
            counts |= counts_of(self._measurements.progress(node, allocation))
        known = {name: count for name, count in counts.items() if name in watched.requests}
        missed = windows.look(known, now)
        return [f"{name} has missed its deadline in {MISSED_RUNNING} windows of {WINDOW_S:g} s" for name in missed]

    async def look(self) -> None:
        """Look at the application that waits longest for it, if its time has come."""
        scene = self._scene
        if scene is None:
            return
        still = {job for job, watched in scene.jobs.items() if watched.still}
        due = [(kept.due, job) for job, kept in self._followed.items() if kept.why and job in still]
        when, job = min(due, default=(math.inf, ""))
        if when <= self._database.clock.steady():
            await self._look_at(job, self._followed[job], scene.version)

    async def _look_at(self, job: str, kept: _Followed, version: int) -> None:
        """``version``: of the database, at which what calls for the look was seen."""
        causes, steady = kept.take(), self._database.clock.steady
        why = storable("; ".join(causes), MOST_TEXT)
        try:
            outcome = await self._look.at(job, why, version)
        except NotFound:  # it has gone meanwhile
            return
        except UNAVAILABLE:
            kept.put_off(causes, steady())
            raise
        except (Again, Stale, BusError, ManagerError) as error:
            kept.refused += isinstance(error, (Conflict, Invalid))
            if kept.refused < TRIES:
                log.info("an application is looked at later", job=job, why=why, error=str(error))
                kept.put_off(causes, steady())
                return
            outcome = Outcome(f"it stays as it is: {error}")
        except Exception:  # whatever it is, the others are looked at all the same
            log.exception("looking at an application has failed", job=job)
            outcome = Outcome("looking at it has failed; the manager's log says why")
        kept.settle(causes, outcome, steady())
        log.info("an application was looked at", job=job, why=why, outcome=outcome.text)
        await self._database.write(lambda tx: note(tx, job, why, outcome.text))


def note(tx: WriteTx, job: str, why: str, outcome: str) -> None:
    """Write down what came of the last look; the job may be gone."""
    row = tx.session.get(JobRow, job)
    if row is None:
        return
    budget = None if row.spec.adjust is None else row.spec.adjust.budget
    left = left_of(budget, past_moves(tx, job, tx.now))
    last = LastLookRow(job=job, looked_at=tx.now, why=why, outcome=storable(outcome, MOST_TEXT), left=left)
    tx.session.merge(last)
