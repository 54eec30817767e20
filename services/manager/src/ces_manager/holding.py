"""What the flows of placed jobs hold of links, and how a change of it is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import delete, insert, select

from ces_common.db.tables import HopRow, JobRow, ReservationRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.events import PlanRevised, RevisionCause, ShortFlow
from ces_manager.capacity import hops
from ces_manager.records import flow_record


def held_flows(tx: ReadTx, job: JobRow) -> Sequence[ReservationRow]:
    """In order of their numbers."""
    query = select(ReservationRow).where(ReservationRow.job == job.id, ReservationRow.held)
    return tx.session.scalars(query.order_by(ReservationRow.number)).all()


def take_links(tx: WriteTx, flows: Iterable[ReservationRow]) -> None:
    """Write down what the flows take of each link of their paths."""
    shares = [
        {"number": flow.number, "src": src, "dst": dst, "bandwidth": flow.bandwidth}
        for flow in flows
        for src, dst in hops(flow.path)
    ]
    if shares:
        tx.session.execute(insert(HopRow), shares)


def free_links(tx: WriteTx, flows: Iterable[ReservationRow]) -> None:
    """The flows take nothing of any link; they stay held."""
    tx.session.execute(delete(HopRow).where(HopRow.number.in_([flow.number for flow in flows])))


def emit_revised(
    tx: WriteTx,
    job: JobRow,
    revision: str,
    cause: RevisionCause,
    changed: Iterable[ReservationRow],
    held: Iterable[ReservationRow],
) -> None:
    """Tell what the ``changed`` of the job's ``held`` flows are now."""
    revised = PlanRevised(
        revision=revision,
        job=job.id,
        attempt=job.attempt,
        cause=cause,
        flows=[flow_record(row) for row in changed],
        short=[
            ShortFlow(src=row.src, dst=row.dst, min=row.min, bandwidth=row.bandwidth)
            for row in held
            if row.bandwidth < row.min
        ],
    )
    tx.emit("plan", "revised", revision, revised, job=job.id)
