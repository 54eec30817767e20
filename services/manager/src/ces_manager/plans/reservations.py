"""Reservations: what the flows of placed jobs hold of links, and the event of a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select

from ces_common.db.tables import JobRow, ReservationRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.plans import PlanRevised, RevisionCause, ShortFlow
from ces_manager.jobs.records import flow_record


def held_flows(tx: ReadTx, job: JobRow) -> Sequence[ReservationRow]:
    """The flows that a job holds, in order of their numbers."""
    of_job = (ReservationRow.job == job.id) & (ReservationRow.attempt == job.attempt)
    query = select(ReservationRow).where(of_job, ReservationRow.held)
    return tx.session.scalars(query.order_by(ReservationRow.number)).all()


def emit_revised(
    tx: WriteTx,
    job: JobRow,
    revision: str,
    cause: RevisionCause,
    changed: Iterable[ReservationRow],
    held: Iterable[ReservationRow],
) -> None:
    """Emit the new paths and rates of the ``changed`` flows, and which of all ``held`` ones are below their minimum."""
    revised = PlanRevised(
        revision=revision,
        job=job.id,
        attempt=job.attempt,
        cause=cause,
        flows=[flow_record(row) for row in changed],
        short=[ShortFlow(src=row.src, dst=row.dst, min=row.min, rate=row.rate) for row in held if row.rate < row.min],
    )
    tx.emit("plan", "revised", revision, revised, job=job.id)
