"""The question what would be changed of a running job, and the scheduler's answer."""

from __future__ import annotations

from datetime import datetime

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, NoResponder
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.adjustments import HOUR_S, AdjustmentAnswer, AdjustmentQuery, AdjustmentTerms
from ces_manager.adjusting.past_moves import past_moves
from ces_manager.errors import Unavailable
from ces_manager.jobs.adjustable import check_adjustable
from ces_manager.jobs.transitions import job_row

log = structlog.get_logger()
ANSWER_S = 28.0  # the scheduler gives it up before, and whoever asks waits a little longer


def query_of(tx: ReadTx, job: str, moves: int, now: datetime) -> AdjustmentQuery:
    """On the terms of the job's file, if it has any. Raises NotFound; Conflict where there is nothing to be asked."""
    restarts, row = check_adjustable(tx, job), job_row(tx, job)
    past = past_moves(tx, job, now) if row.adjusts else []
    return AdjustmentQuery(job=job, moves=moves, restarts=restarts, terms=_terms(row, now), past=past)


async def ask(bus: Bus, query: AdjustmentQuery) -> AdjustmentAnswer:
    """Raises Unavailable and BusError."""
    try:
        raw = await bus.request(subjects.rpc("scheduler", "adjust"), query.encode(), timeout_s=ANSWER_S)
        return AdjustmentAnswer.model_validate_json(raw)
    except NoResponder as error:
        raise Unavailable("no scheduler is there, or an older one, which adjusts no running jobs") from error
    except ValueError as error:
        log.error("a scheduler's answer about a running job cannot be read", kind=type(error).__name__)
        raise Unavailable("the scheduler answers with what cannot be read; the manager's log says more") from error


def _terms(row: JobRow, now: datetime) -> AdjustmentTerms:
    remaining_s = _remaining_s(row, now)
    asked = row.spec.adjust
    if asked is None:
        return AdjustmentTerms(remaining_s=remaining_s)
    return AdjustmentTerms(
        remaining_s=remaining_s,
        budget=asked.budget,
        reserve=asked.reserve,
        cooldown_s=asked.cooldown,
        least_gain=asked.least_gain,
    )


def _remaining_s(row: JobRow, now: datetime) -> float:
    """Within the next hour, by how long the job says it runs; one that runs longer has said nothing."""
    if row.expected_s is None or row.placed_at is None:
        return HOUR_S
    left_s = row.expected_s - (now - row.placed_at).total_seconds()
    return min(HOUR_S, left_s) if left_s > 0 else HOUR_S
