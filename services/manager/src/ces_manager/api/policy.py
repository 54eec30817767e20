"""The versions of an evolving policy, which the scheduler is asked for when somebody looks."""

from __future__ import annotations

import structlog
from fastapi import APIRouter, Request

from ces_common import subjects
from ces_common.bus.port import BusError, NoResponder
from ces_common.messages.policies import PolicyAnswer, PolicyQuery
from ces_manager.api.auth import VIEWER
from ces_manager.api.context import context_of
from ces_manager.api.strict_route import StrictRoute

log = structlog.get_logger()
router = APIRouter(prefix="/v1", tags=["cluster"], route_class=StrictRoute)
ANSWER_S = 3.0


@router.get("/policy", dependencies=[VIEWER])
async def policy(request: Request) -> PolicyAnswer:
    """Which version of an evolving policy decides, what is known of the others, and what has happened to them;
    `remark` says why that cannot be told."""
    bus, question = context_of(request).bus, PolicyQuery().encode()
    try:
        raw = await bus.request(subjects.rpc("scheduler", "policy"), question, timeout_s=ANSWER_S)
        return PolicyAnswer.model_validate_json(raw)
    except NoResponder:
        return PolicyAnswer(remark="no scheduler is there, or an older one, which tells nothing of versions")
    except (BusError, ValueError) as error:
        log.warning("the scheduler tells nothing of its policy's versions", kind=type(error).__name__)
        return PolicyAnswer(remark="the scheduler does not answer, or not as expected: the manager's log says more")
