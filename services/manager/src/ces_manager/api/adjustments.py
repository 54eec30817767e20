"""What would be changed of a running job, as the scheduler decides it when somebody asks."""

from __future__ import annotations

from typing import Annotated

import structlog
from fastapi import APIRouter, Query, Request

from ces_common import subjects
from ces_common.bus.port import Bus, NoResponder
from ces_common.messages.adjustments import MOST_MOVES, AdjustmentAnswer, AdjustmentProposal, AdjustmentQuery
from ces_manager.api.auth import SUBMITTER, identity_of
from ces_manager.api.context import context_of
from ces_manager.api.jobs import VisibleJob
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import Conflict, Overloaded, Unavailable
from ces_manager.jobs.adjustable import check_adjustable

log = structlog.get_logger()
router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
ANSWER_S = 28.0  # the scheduler gives it up before, and whoever asks waits a little longer
MoveCount = Annotated[int, Query(ge=0, le=MOST_MOVES)]


@router.get("/jobs/{job}/adjustment", dependencies=[SUBMITTER])
async def adjustment(request: Request, job: VisibleJob, moves: MoveCount = MOST_MOVES) -> AdjustmentProposal:
    """What would be changed of a running job with goals as the cluster is now: rates and paths, or up to `moves` moves
    of tasks; what that gains and costs, which limits the job breaks, and what is proven. Nothing is changed."""
    context = context_of(request)
    restarts = await context.database.read(lambda tx: check_adjustable(tx, job))
    name = identity_of(request).name
    if name in context.adjusting:
        raise Overloaded("a job is being looked at for you: wait for its answer")
    if not context.adjustments.allows(name, context.database.clock.steady()):
        raise Overloaded("jobs are looked at for you too often: wait a moment")
    context.adjusting.add(name)
    try:
        answer = await _asked(context.bus, AdjustmentQuery(job=job, moves=moves, restarts=restarts))
    finally:
        context.adjusting.discard(name)
    if answer.busy:
        raise Overloaded(answer.refusal or "another job is being looked at")
    if answer.proposal is None:
        raise Conflict(answer.refusal or "the scheduler proposes nothing")
    return answer.proposal


async def _asked(bus: Bus, query: AdjustmentQuery) -> AdjustmentAnswer:
    """Raises Unavailable and BusError."""
    try:
        raw = await bus.request(subjects.rpc("scheduler", "adjust"), query.encode(), timeout_s=ANSWER_S)
        return AdjustmentAnswer.model_validate_json(raw)
    except NoResponder as error:
        raise Unavailable("no scheduler is there, or an older one, which adjusts no running jobs") from error
    except ValueError as error:
        log.error("a scheduler's answer about a running job cannot be read", kind=type(error).__name__)
        raise Unavailable("the scheduler answers with what cannot be read; the manager's log says more") from error
