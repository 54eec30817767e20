"""At home: after this database was restored, or taken over by a standby, jobs may have left home in what it has lost.
None of them is placed anywhere before the regions to which it may have gone have said what they have."""

from __future__ import annotations

from sqlalchemy import or_, select

from ces_common.db.region_tables import AwayRow
from ces_common.db.tables import ClusterRow, JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.regions import MAX_JOBS, DoubtfulJob
from ces_common.states import JOB_OVER

_DOUBTFUL = (
    select(JobRow)
    .join(AwayRow, AwayRow.job == JobRow.id)
    .where(JobRow.state.not_in(JOB_OVER), or_(AwayRow.epoch.is_(None), AwayRow.epoch != ClusterRow.epoch))
    .order_by(JobRow.id)
)


def doubt(tx: ReadTx, row: JobRow) -> str | None:
    """Why a job may not be placed yet, here or elsewhere."""
    if not row.spec.regions:
        return None
    away = tx.session.get(AwayRow, row.id)
    if away is None or away.epoch == tx.cluster().epoch:
        return None
    named = ", ".join(row.spec.regions)
    return f"this database was restored: regions ({named}) are asked first whether they have job {row.name}"


def doubtful_jobs(tx: ReadTx, after: str = "", most: int = MAX_JOBS) -> list[DoubtfulJob]:
    """At most so many, those behind ``after`` first and then from the beginning: who names the last one that it was
    told of comes to each in its turn, also where the first ones stay doubtful."""
    rows = list(tx.session.scalars(_DOUBTFUL.where(JobRow.id > after).limit(most)))
    if after and len(rows) < most:
        rows += tx.session.scalars(_DOUBTFUL.where(JobRow.id <= after).limit(most - len(rows)))
    return [DoubtfulJob(job=row.id, regions=list(row.spec.regions)) for row in rows]
