"""What was learned, as the REST API shows it."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select

from ces_common.db import ReadTx
from ces_common.db.availability_tables import LinkAvailabilityRow, NodeAvailabilityRow
from ces_common.messages.availability import Availability
from ces_manager.availability.evidence import Evidence, availability
from ces_manager.availability.watch import Hop


def availability_of_nodes(tx: ReadTx, names: Iterable[str] | None = None) -> dict[str, Availability]:
    """Of all nodes, or those named, of which anything was learned."""
    query = select(NodeAvailabilityRow)
    if names is not None:
        query = query.where(NodeAvailabilityRow.node.in_(list(names)))
    return {row.node: _view(row) for row in tx.session.scalars(query)}


def availability_of_links(tx: ReadTx, sources: Iterable[str]) -> dict[Hop, Availability]:
    """Of the links from these nodes of which anything was learned."""
    query = select(LinkAvailabilityRow).where(LinkAvailabilityRow.src.in_(list(sources)))
    return {(row.src, row.dst): _view(row) for row in tx.session.scalars(query)}


def _view(row: NodeAvailabilityRow | LinkAvailabilityRow) -> Availability:
    return availability(Evidence(row.up_s, row.down_s), row.least)
