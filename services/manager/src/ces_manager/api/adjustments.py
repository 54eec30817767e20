"""What would be changed of a running job, as the scheduler decides it when somebody asks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from ces_common.messages.adjustments import MOST_MOVES, AdjustmentProposal
from ces_manager.adjusting.asking import ask, query_of
from ces_manager.api.auth import SUBMITTER, identity_of
from ces_manager.api.context import context_of
from ces_manager.api.jobs import VisibleJob
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import Conflict, Overloaded

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
MoveCount = Annotated[int, Query(ge=0, le=MOST_MOVES)]


@router.get("/jobs/{job}/adjustment", dependencies=[SUBMITTER])
async def adjustment(request: Request, job: VisibleJob, moves: MoveCount = MOST_MOVES) -> AdjustmentProposal:
    """What would be changed of a running job with goals as the cluster is now: rates and paths, or up to `moves` moves
    of tasks; what that gains and costs, which limits the job breaks, and what is proven. Nothing is changed."""
    context = context_of(request)
    query = await context.database.read(lambda tx: query_of(tx, job, moves, context.database.clock.now()))
    name = identity_of(request).name
    if name in context.adjusting:
        raise Overloaded("a job is being looked at for you: wait for its answer")
    if not context.adjustments.allows(name, context.database.clock.steady()):
        raise Overloaded("jobs are looked at for you too often: wait a moment")
    context.adjusting.add(name)
    try:
        answer = await ask(context.bus, query)
    finally:
        context.adjusting.discard(name)
    if answer.busy:
        raise Overloaded(answer.refusal or "another job is being looked at")
    if answer.proposal is None:
        raise Conflict(answer.refusal or "the scheduler proposes nothing")
    return answer.proposal
