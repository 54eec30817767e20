"""What a drain would hit, and what the scheduler says of where it would go."""

from __future__ import annotations

from collections import defaultdict

import structlog
from sqlalchemy import select

from ces_common import subjects
from ces_common.bus.port import Bus, BusError
from ces_common.db.tables import LIVE_STATES, AllocationRow
from ces_common.db.uow import ReadTx
from ces_common.messages.drains import DrainedJob, DrainForecast
from ces_common.messages.queries import DrainAnswer, DrainQuery
from ces_manager.jobs.task_moves import ASIDE
from ces_manager.nodes.rows import jobs_on, node_row

log = structlog.get_logger()
UNTOLD = "the scheduler does not answer, so nobody says whether there are other places"
ANSWER_S = 20.0  # longer than the scheduler takes at most


def hit_by_drain(tx: ReadTx, node: str) -> DrainForecast:
    """As the database tells it; nothing is said of other places. Raises NotFound."""
    row = node_row(tx, node)
    workers: dict[str, list[str]] = defaultdict(list)
    live = select(AllocationRow.job, AllocationRow.task).where(
        AllocationRow.node == node, AllocationRow.state.in_(LIVE_STATES), AllocationRow.attempt != ASIDE
    )
    for holder, task in tx.session.execute(live.order_by(AllocationRow.job, AllocationRow.rank)):
        workers[holder].append(task)
    jobs = [
        DrainedJob(
            id=job.id,
            name=job.name,
            tenant=job.tenant,
            state=job.state,
            priority=job.priority,
            workers=workers[job.id],
            malleable=job.size is not None,
        )
        for job in jobs_on(tx, node)
        if job.id in workers  # of another, only the move of a task to here ends
    ]
    return DrainForecast(node=node, cordoned=row.cordoned, jobs=jobs)


async def with_places(bus: Bus, forecast: DrainForecast) -> DrainForecast:
    """The same, with whether each job has a place elsewhere, as far as the scheduler says."""
    if not forecast.jobs:
        return forecast
    query = DrainQuery(node=forecast.node).encode()
    try:
        raw = await bus.request(subjects.rpc("scheduler", "drain"), query, timeout_s=ANSWER_S)
        answer = DrainAnswer.model_validate_json(raw)
    except (BusError, ValueError) as error:
        log.info("the scheduler does not say where jobs could go", node=forecast.node, error=str(error))
        return forecast.model_copy(update={"remark": UNTOLD})
    jobs = [_placed(job, answer) for job in forecast.jobs]
    untold = sum(job.elsewhere is None for job in jobs)
    remark = f"nobody says of {untold} jobs whether there are other places" if untold else None
    return forecast.model_copy(update={"jobs": jobs, "remark": remark})


def _placed(job: DrainedJob, answer: DrainAnswer) -> DrainedJob:
    if job.id in answer.places:
        return job.model_copy(update={"elsewhere": True})
    reason = answer.reasons.get(job.id)
    return job if reason is None else job.model_copy(update={"elsewhere": False, "reason": reason})
