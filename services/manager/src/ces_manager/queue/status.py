"""The queue status of a waiting job (``QueueStatus``), as the scheduler last reported it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from sqlalchemy import select

from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.events import JobName, QueueStatus, QueueStatusView


def without_rank(queue_status: QueueStatus | None) -> Mapping[str, object]:
    """What counts as a change of queue status: not the position and the score, which change all the time."""
    return {} if queue_status is None else queue_status.model_dump(exclude={"position", "score"})


def with_holder_names(
    tx: ReadTx, statuses: Sequence[QueueStatus], tenants: Collection[str] | None = None
) -> list[QueueStatusView]:
    """The statuses, with the names of the jobs that hold what they wait for. ``tenants``: of whose jobs alone that is
    told; None for all."""
    ids = set(chain.from_iterable(queue_status.held_by for queue_status in statuses))
    names = {holder.id: holder for holder in job_names(tx, ids, tenants)}
    views = []
    for queue_status in statuses:
        holders = [names[job] for job in queue_status.held_by if job in names]
        held_by = queue_status.held_by if tenants is None else [holder.id for holder in holders]
        views.append(QueueStatusView(**dict(queue_status) | {"held_by": held_by}, holders=holders))
    return views


def job_names(tx: ReadTx, jobs: Iterable[str], tenants: Collection[str] | None = None) -> list[JobName]:
    """Ids and names of the jobs that exist, of these tenants or all, in the order asked for."""
    ids = list(dict.fromkeys(jobs))
    if not ids:
        return []
    query = select(JobRow.id, JobRow.name).where(JobRow.id.in_(ids))
    if tenants is not None:
        query = query.where(JobRow.tenant.in_(tenants))
    found = {row.id: row.name for row in tx.session.execute(query)}
    return [JobName(id=job, name=found[job]) for job in ids if job in found]
