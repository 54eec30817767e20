"""Looks at applications that CES may change by itself, whenever something calls for it, and carries out what is worth
it. Never by a timer alone: where nothing has changed and deadlines are kept, nothing is asked."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from ces_common.bus.port import Bus, BusError
from ces_common.db import UNAVAILABLE, WriteTx, cause_of
from ces_common.db.move_tables import LastLookRow
from ces_common.db.tables import JobRow
from ces_common.messages.adjustments import MOST_MOVES, AdjustmentProposal, AdjustmentQuery, ProposedMove
from ces_common.messages.moves import MoveRequest
from ces_manager.adjusting.asking import ask, query_of
from ces_manager.adjusting.deadline_windows import MISSED_RUNNING, WINDOW_S, Counts, DeadlineWindows, counts_of
from ces_manager.adjusting.making import change_flows, flows_of_move, make_move, moves_in_order
from ces_manager.adjusting.past_moves import left_of, past_moves
from ces_manager.adjusting.seen_jobs import Scene, Watched, scene_of
from ces_manager.adjusting.surroundings import Seen, news
from ces_manager.database import Database
from ces_manager.errors import Conflict, Invalid, NotFound, Unavailable
from ces_manager.measurements import Measurements
from ces_manager.plans.move_paths import paths_for
from ces_manager.plans.proposal import Stale
from ces_manager.text import storable

log = structlog.get_logger()
LOOK_S = 1.0
RETRY_S = 5.0
"""After which somebody who was busy is asked again."""
LEAST_S = 10.0
"""Between two looks at one application: links may flap, and its own word may call for a look."""
MOST_TEXT = 500  # characters


@dataclass
class _Followed:
    """An application from look to look. ``why``: what calls for a look that it has not had; ``due``: when it may."""

    seen: Seen
    windows: DeadlineWindows = field(default_factory=DeadlineWindows)
    why: list[str] = field(default_factory=list)
    due: float = -math.inf


class Again(Exception):
    """Somebody else's job is being decided on."""


class SelfAdjuster:
    """``holds``: whether this manager is the one that does it. One that has just taken it over knows of no change
    before."""

    def __init__(self, database: Database, bus: Bus, measurements: Measurements, holds: Callable[[], bool]) -> None:
        self._database, self._bus, self._measurements, self._holds = database, bus, measurements, holds
        self._scene: Scene | None = None
        self._followed: dict[str, _Followed] = {}

    async def run(self) -> None:
        while True:
            try:
                await self.step()
            except UNAVAILABLE as error:
                log.warning("the database does not answer", error=cause_of(error))
            await asyncio.sleep(LOOK_S)

    async def step(self) -> None:
        """Take in what has changed, and look at the application that waits longest for it."""
        if not self._holds():
            self._scene = None
            self._followed.clear()
            return
        former = self._scene
        self._scene = await self._database.read(lambda tx: scene_of(tx, former))
        now = self._database.clock.steady()
        jobs = {each.job: each for each in self._scene.jobs}
        self._followed = {job: kept for job, kept in self._followed.items() if job in jobs}
        for job, watched in jobs.items():
            self._take_in(job, watched, now)
        due = [(kept.due, job) for job, kept in self._followed.items() if kept.why and jobs[job].still]
        when, job = min(due, default=(math.inf, ""))
        if when <= now:
            await self._look(job, self._followed[job])

    def _take_in(self, job: str, watched: Watched, now: float) -> None:
        kept = self._followed.setdefault(job, _Followed(watched.seen))
        found = news(kept.seen, watched.seen)
        kept.seen = watched.seen
        counts: dict[str, Counts] = {}
        for node, allocation in watched.senders:
            counts |= counts_of(self._measurements.progress(node, allocation))
        found += [
            f"{name} has missed its deadline in {MISSED_RUNNING} windows of {WINDOW_S:g} s"
            for name in kept.windows.look(counts, now)
        ]
        kept.why += [why for why in found if why not in kept.why]

    async def _look(self, job: str, kept: _Followed) -> None:
        why, now = storable("; ".join(kept.why), MOST_TEXT), self._database.clock.steady()
        try:
            outcome = await self._adjust(job, why)
        except NotFound:  # it has gone meanwhile
            kept.why.clear()
            return
        except (Again, Stale, Unavailable, BusError) as error:
            log.info("an application is looked at later", job=job, why=why, error=str(error))
            kept.due = now + RETRY_S
            return
        except (Conflict, Invalid) as error:
            outcome = f"it stays as it is: {error}"
        kept.why.clear()
        kept.due = self._database.clock.steady() + LEAST_S
        log.info("an application was looked at", job=job, why=why, outcome=outcome)
        await self._database.write(lambda tx: note(tx, job, why, outcome))

    async def _adjust(self, job: str, why: str) -> str:
        """Ask what is worth changing, and change it; returns what came of it. Raises what its parts do, and Again."""
        query = await self._query(job, MOST_MOVES)
        proposal = await self._asked(query)
        found = proposal.adjustment
        if found is not None and len(found.moves) > 1 and not proposal.broken:
            query = await self._query(job, 1)  # each by itself must be worth it: the others may come to nothing
            proposal = await self._asked(query)
            found = proposal.adjustment
        if found is None:
            broken = "; ".join(each.message for each in proposal.broken)
            return f"it stays as it is: {broken + '; ' if broken else ''}{proposal.certificate.text}"
        if not found.moves:
            return await self._database.write(lambda tx: change_flows(tx, job, proposal))
        return await self._move(job, proposal, why, query.terms.remaining_s)

    async def _query(self, job: str, moves: int) -> AdjustmentQuery:
        return await self._database.read(lambda tx: query_of(tx, job, moves, self._database.clock.now()))

    async def _asked(self, query: AdjustmentQuery) -> AdjustmentProposal:
        answer = await ask(self._bus, query)
        if answer.busy:
            raise Again(answer.refusal)
        if answer.proposal is None:
            raise Conflict(answer.refusal or "the scheduler proposes nothing")
        return answer.proposal

    async def _move(self, job: str, proposal: AdjustmentProposal, why: str, remaining_s: float) -> str:
        """Make the first of the moves that can be made."""
        refusals = []
        for move in await self._database.read(lambda tx: moves_in_order(tx, job, proposal)):
            try:
                return await self._made(job, proposal, move, why, remaining_s)
            except (Conflict, Invalid) as error:
                refusals.append(str(error))
        return f"it stays as it is: {'; '.join(refusals)}"

    async def _made(
        self, job: str, proposal: AdjustmentProposal, move: ProposedMove, why: str, remaining_s: float
    ) -> str:
        """With the paths and rates that were proposed; where these have no room beside what the job still holds, with
        others that have."""
        given = await self._database.read(lambda tx: flows_of_move(tx, job, proposal, move))
        if given is not None:
            flows = given
            try:
                return await self._database.write(
                    lambda tx: make_move(tx, job, proposal, move, flows, why, remaining_s)
                )
            except Conflict as error:
                log.info("a move is sought other paths for", job=job, task=move.task, error=str(error))
        others = await paths_for(self._bus, job, MoveRequest(task=move.task, to=move.dst))
        return await self._database.write(lambda tx: make_move(tx, job, proposal, move, others, why, remaining_s))


def note(tx: WriteTx, job: str, why: str, outcome: str) -> None:
    """Write down what came of the last look; the job may be gone."""
    row = tx.session.get(JobRow, job)
    if row is None:
        return
    budget = None if row.spec.adjust is None else row.spec.adjust.budget
    left = left_of(budget, past_moves(tx, job, tx.now))
    look = LastLookRow(job=job, looked_at=tx.now, why=why, outcome=storable(outcome, MOST_TEXT), left=left)
    tx.session.merge(look)
