"""How fast the scheduler takes a malleable job to be, asked when somebody looks."""

from __future__ import annotations

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, BusError
from ces_common.messages.speeds import SpeedAnswer, SpeedQuery

log = structlog.get_logger()
ANSWER_S = 1.0  # nobody who looks at a job waits longer


async def predicted_speeds(bus: Bus, job: str) -> dict[int, float]:
    """Units/s at the job's size and those next to it; empty where the scheduler does not say."""
    try:
        raw = await bus.request(subjects.rpc("scheduler", "speed"), SpeedQuery(job=job).encode(), timeout_s=ANSWER_S)
        return SpeedAnswer.model_validate_json(raw).rates
    except (BusError, ValueError) as error:
        log.info("the scheduler does not say how fast a job is", job=job, error=str(error))
        return {}
