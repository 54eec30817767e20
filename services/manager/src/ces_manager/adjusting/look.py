"""One look at an application: what is worth changing is asked for, and carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from ces_common.bus.port import Bus
from ces_common.db import WriteTx
from ces_common.messages.adjustments import HOUR_S, MOST_MOVES, AdjustmentProposal, AdjustmentQuery, ProposedMove
from ces_common.messages.moves import MoveRequest
from ces_common.messages.plans import FlowPlan
from ces_manager.adjusting.asking import ask, query_of
from ces_manager.adjusting.making import BeyondTerms, change_flows, flows_of_move, make_move, moves_in_order
from ces_manager.database import Database
from ces_manager.errors import Conflict, Invalid
from ces_manager.plans.move_paths import paths_for

log = structlog.get_logger()


class Again(Exception):
    """Nobody could decide just now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``again_in_s``: after which the terms would allow what they may have forbidden now; None: nothing was forbidden
    by earlier moves."""

    text: str
    again_in_s: float | None = None


class Look:
    """``holds``: whether this manager is the one that changes applications by itself."""

    def __init__(self, database: Database, bus: Bus, holds: Callable[[], bool]) -> None:
        self._database, self._bus, self._holds = database, bus, holds

    async def at(self, job: str, why: str, version: int) -> Outcome:
        """``version``: of the database, which the scheduler has to know. Raises Again; Stale where the job changed
        meanwhile; NotFound, Conflict, Invalid, Unavailable and BusError."""
        query = await self._query(job, MOST_MOVES)
        proposal = await self._asked(query, version)
        found = proposal.adjustment
        if found is not None and len(found.moves) > 1 and not proposal.broken:
            query = await self._query(job, 1)  # each by itself must be worth it: the others may come to nothing
            proposal = await self._asked(query, version)
            found = proposal.adjustment
        if found is None:
            broken = "; ".join(each.message for each in proposal.broken)
            text = f"it stays as it is: {broken + '; ' if broken else ''}{proposal.certificate.text}"
            return Outcome(text, _looser_in_s(query))
        if not found.moves:
            return Outcome(await self._write(lambda tx: change_flows(tx, job, proposal)))
        try:
            return Outcome(await self._move(job, proposal, why, query.terms.remaining_s))
        except BeyondTerms as error:
            return Outcome(f"it stays as it is: {error}", _looser_in_s(query))

    async def _query(self, job: str, moves: int) -> AdjustmentQuery:
        return await self._database.read(lambda tx: query_of(tx, job, moves, self._database.clock.now()))

    async def _asked(self, query: AdjustmentQuery, version: int) -> AdjustmentProposal:
        answer = await ask(self._bus, query)
        if answer.busy:
            raise Again(answer.refusal)
        if answer.proposal is None:
            raise Conflict(answer.refusal or "the scheduler proposes nothing")
        if answer.proposal.version < version:
            raise Again("the scheduler does not know yet what has changed")
        return answer.proposal

    async def _move(self, job: str, proposal: AdjustmentProposal, why: str, remaining_s: float) -> str:
        """Make the first of the moves that can be made. Raises Conflict where none can."""
        refusals = []
        for move in await self._database.read(lambda tx: moves_in_order(tx, job, proposal)):
            try:
                return await self._made(job, proposal, move, why, remaining_s)
            except BeyondTerms:
                raise
            except (Conflict, Invalid) as error:
                refusals.append(str(error))
        raise Conflict("; ".join(refusals))

    async def _made(
        self, job: str, proposal: AdjustmentProposal, move: ProposedMove, why: str, remaining_s: float
    ) -> str:
        """With the paths and rates that were proposed; where these have no room beside what the job still holds, with
        others that have."""

        def make(given: Sequence[FlowPlan]) -> Callable[[WriteTx], str]:
            return lambda tx: make_move(tx, job, proposal, move, given, why, remaining_s)

        proposed = await self._database.read(lambda tx: flows_of_move(tx, job, proposal, move))
        if proposed is not None:
            try:
                return await self._write(make(proposed))
            except BeyondTerms:
                raise
            except Conflict as error:
                log.info("a move is sought other paths for", job=job, task=move.task, error=str(error))
        others = await paths_for(self._bus, job, MoveRequest(task=move.task, to=move.dst))
        return await self._write(make(others))

    async def _write(self, make: Callable[[WriteTx], str]) -> str:
        """Raises Again where another manager has taken over meanwhile."""
        if not self._holds():
            raise Again("another manager changes applications now")
        return await self._database.write(make)


def _looser_in_s(query: AdjustmentQuery) -> float | None:
    """Until the cooldown ends, or the oldest move of the hour counts no more."""
    if not query.past:
        return None
    waits = [query.terms.cooldown_s - query.past[-1].ago_s]
    if query.terms.budget is not None:
        waits.append(HOUR_S - query.past[0].ago_s)
    return min((wait for wait in waits if wait > 0), default=None)
