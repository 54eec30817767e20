"""Flows of all jobs that reserve bandwidth, by link or node, and those whose link does not carry what they were
given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import Select, or_, select

from ces_common.db.tables import HopRow, JobRow, NodeRow, ReservationRow
from ces_common.db.uow import ReadTx
from ces_common.messages.api import Page
from ces_common.messages.dashboard import HeldFlow
from ces_manager.cursors import cursor_number
from ces_manager.measurements import Measurements
from ces_manager.network.flow_rates import WINDOW, shortfall_of

_AT_ONCE = 500  # rows that are read together
_FLOWS = (
    select(
        ReservationRow.number,
        ReservationRow.job,
        ReservationRow.src,
        ReservationRow.dst,
        ReservationRow.min,
        ReservationRow.max,
        ReservationRow.rate,
        ReservationRow.path,
        JobRow.name,
        JobRow.tenant,
        JobRow.started_at,
    )
    .join(JobRow, JobRow.id == ReservationRow.job)
    .where(ReservationRow.held)
    .order_by(ReservationRow.number)
)
_SHAPERS = select(NodeRow.name).where(NodeRow.network == "tc")


def list_flows(
    tx: ReadTx,
    measurements: Measurements,
    now: datetime,
    *,
    cursor: str | None,
    limit: int,
    link: tuple[str, str] | None = None,
    node: str | None = None,
    short: bool = False,
    tenants: Collection[str] | None = None,
) -> Page[HeldFlow]:
    """In order of their numbers; the cursor is the last number seen. ``link``: that reserve this one; ``node``: whose
    path passes this one; ``short``: whose link carries less than it should; ``tenants``: whose; None for all."""
    hops = select(HopRow.number)
    query = _FLOWS
    if link is not None:
        query = query.where(ReservationRow.number.in_(hops.where(HopRow.src == link[0], HopRow.dst == link[1])))
    if node is not None:
        query = query.where(ReservationRow.number.in_(hops.where(or_(HopRow.src == node, HopRow.dst == node))))
    if tenants is not None:
        query = query.where(JobRow.tenant.in_(tenants))
    found: Iterable[HeldFlow] = _views(tx, query, cursor_number(cursor), measurements, now)
    if short:
        found = (flow for flow in found if flow.shortfall is not None)
    page = list(islice(found, limit + 1))
    return Page[HeldFlow](items=page[:limit], next=str(page[limit - 1].number) if len(page) > limit else None)


def short_flows(tx: ReadTx, measurements: Measurements, now: datetime, most: int) -> list[HeldFlow]:
    """Flows whose link carries less than it should: the first ``most`` of each tenant."""
    counts: Counter[str] = Counter()
    found = []
    for flow in _views(tx, _FLOWS, 0, measurements, now):
        if flow.shortfall is not None and counts[flow.tenant] < most:
            counts[flow.tenant] += 1
            found.append(flow)
    return found


def _views(
    tx: ReadTx, query: Select[*tuple[Any, ...]], after: int, measurements: Measurements, now: datetime
) -> Iterator[HeldFlow]:
    """Read as far as somebody goes on asking."""
    shapers, recent = set(tx.session.scalars(_SHAPERS)), now - WINDOW
    while rows := tx.session.execute(query.where(ReservationRow.number > after).limit(_AT_ONCE)).all():
        for row in rows:
            enforced, since = shapers.issuperset(row.path), row.started_at or now
            usage = measurements.flow(row.path[0], row.number, since)
            lately = max(recent, since)  # before it, another flow may have had the same number
            yield HeldFlow(
                **{name: value for name, value in row._mapping.items() if name != "started_at"},
                measured=None if usage is None else usage.measured,
                enforced=enforced,
                shortfall=shortfall_of(measurements.history, row.number, row.path, lately) if enforced else None,
            )
        after = rows[-1].number
