"""Paths and rates for the flows of a task that is to move, as the scheduler works them out."""

from __future__ import annotations

from ces_common import subjects
from ces_common.bus.port import Bus
from ces_common.messages.moves import MoveAnswer, MoveQuery, MoveRequest
from ces_common.messages.plans import FlowPlan
from ces_manager.errors import Conflict, Unavailable

ANSWER_S = 20.0


async def paths_for(bus: Bus, job: str, asked: MoveRequest) -> list[FlowPlan]:
    """Raises BusError and Unavailable; Conflict where there are none."""
    query = MoveQuery(job=job, task=asked.task, node=asked.to).encode()
    raw = await bus.request(subjects.rpc("scheduler", "move"), query, timeout_s=ANSWER_S)
    try:
        answer = MoveAnswer.model_validate_json(raw)
    except ValueError as error:
        raise Unavailable("the scheduler answers with what cannot be read") from error
    if answer.reason is not None:
        raise Conflict(f"{asked.task} cannot be moved to {asked.to}: {answer.reason}")
    return answer.flows
