"""Reservations: what the flows of placed jobs hold of links, and the event of a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sqlalchemy import delete, insert, select

from ces_common.db.tables import HopRow, JobRow, ReservationRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.plans import PlanRevised, RevisionCause, ShortFlow
from ces_manager.jobs.records import flow_record


def held_flows(tx: ReadTx, job: JobRow) -> Sequence[ReservationRow]:
    """The flows that a job holds, in order of their numbers."""
    query = select(ReservationRow).where(ReservationRow.job == job.id, ReservationRow.held)
    return tx.session.scalars(query.order_by(ReservationRow.number)).all()


def reserve_links(tx: WriteTx, flows: Iterable[ReservationRow]) -> None:
    """Reserve each flow's bandwidth on every link of its path."""
    shares = [
        {"number": flow.number, "src": src, "dst": dst, "rate": flow.rate}
        for flow in flows
        for src, dst in pairwise(flow.path)
    ]
    if shares:
        tx.session.execute(insert(HopRow), shares)


def release_links(tx: WriteTx, flows: Iterable[ReservationRow]) -> None:
    """Release the flows' bandwidth on all links; the reservations stay held."""
    tx.session.execute(delete(HopRow).where(HopRow.number.in_([flow.number for flow in flows])))


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
