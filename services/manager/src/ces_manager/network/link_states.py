"""The states of links beside their configuration: whether they are up, and what an active probe measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import bindparam, or_, select

from ces_common import subjects
from ces_common.db.tables import LinkRow, NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.events import LinkChanged
from ces_common.messages.records import LinkRecord
from ces_common.messages.reports import LinkReport, LinkStatus
from ces_manager.columns import shared_columns
from ces_manager.errors import NotFound
from ces_manager.plans.feasibility import Hop
from ces_manager.text import storable

_UNKNOWN = LinkRow(state="up")
_STATE = ("state", "state_since", "state_reason")
_MEASURED = ("measured", "measured_at", "round_trip_us")
# Columns, not rows to be changed: from most reports nothing follows.
_OF_NODES = (
    select(LinkRow.src, LinkRow.dst, LinkRow.state)
    .outerjoin(NodeRow, NodeRow.name == LinkRow.src)
    .where(
        LinkRow.src.in_(bindparam("nodes", expanding=True)),
        or_(NodeRow.network.is_(None), NodeRow.network != "none"),
    )
)


def with_news(tx: ReadTx, reports: Sequence[LinkReport]) -> list[LinkReport]:
    """The reports that say anything new; most do not, and lock nothing."""
    rows = tx.session.connection().execute(_OF_NODES, {"nodes": [report.node for report in reports]})
    known = {(row.src, row.dst): row.state for row in rows}
    return [
        report
        for report in reports
        if any(known.get((report.node, status.peer), status.state) != status.state for status in report.links)
    ]


def take_reports(tx: WriteTx, reports: Iterable[LinkReport]) -> list[Hop]:
    """Store the states of nodes' outgoing links as their agents see them; returns those that changed. Links outside the
    topology are ignored, and so are reports from before a node joined again without a data plane."""
    moved = [change for report in reports for change in _moved_by(tx, report)]
    for row, status in moved:
        row.state, row.state_since, row.state_reason = (
            status.state,
            tx.now,
            None if status.reason is None else storable(status.reason),
        )
        _changed(tx, row)
    return [(row.src, row.dst) for row, _ in moved]


def take_measurement(tx: WriteTx, src: str, dst: str, bandwidth: int | None, round_trip_s: float | None) -> None:
    """Store what an active probe found of a link. ``bandwidth`` in bit/s; None where it could not be measured, which
    voids the measurement before. Raises NotFound."""
    row = tx.session.get(LinkRow, (src, dst))
    if row is None:
        raise NotFound(f"no link {src} › {dst}: ces get links lists those that there are")
    before = row.measured
    row.measured, row.measured_at = bandwidth, tx.now
    row.round_trip_us = None if round_trip_s is None else round(round_trip_s * 1e6)
    if bandwidth != before:
        _changed(tx, row)


def reset_links(tx: WriteTx, node: str) -> None:
    """Nobody watches a node's outgoing links any more: they count as up, with the configured capacity."""
    for row in tx.session.scalars(select(LinkRow).where(LinkRow.src == node)):
        before = row.state, row.measured
        if row.state != "up":
            row.state, row.state_since, row.state_reason = "up", tx.now, None
        row.measured = row.measured_at = row.round_trip_us = None
        if before != ("up", None):
            _changed(tx, row)


def live_states(tx: ReadTx, links: Iterable[LinkRecord]) -> dict[Hop, dict[str, Any]]:
    """For each of these links, the columns of its state as stored now; a new link is up. A measurement is void where
    the capacity, the kind or the medium has changed."""
    rows = {(row.src, row.dst): row for row in tx.session.scalars(select(LinkRow))}
    known: dict[Hop, dict[str, Any]] = {}
    for link in links:
        row = rows.get((link.src, link.dst), _UNKNOWN)
        same = (link.bandwidth, link.kind, link.medium) == (row.bandwidth, row.kind, row.medium)
        columns = {name: getattr(row, name) for name in _STATE}
        known[link.src, link.dst] = columns | {name: getattr(row, name) if same else None for name in _MEASURED}
    return known


def _moved_by(tx: ReadTx, report: LinkReport) -> list[tuple[LinkRow, LinkStatus]]:
    node = tx.session.get(NodeRow, report.node)
    if node is not None and node.network == "none":
        return []
    rows = {row.dst: row for row in tx.session.scalars(select(LinkRow).where(LinkRow.src == report.node))}
    said = {status.peer: status for status in report.links}
    return [(rows[peer], status) for peer, status in said.items() if peer in rows and rows[peer].state != status.state]


def _changed(tx: WriteTx, row: LinkRow) -> None:
    tx.cluster().topology_version = tx.version
    changed = LinkChanged(**shared_columns(row, LinkChanged), reason=row.state_reason)
    tx.emit("link", "changed", subjects.link_id(row.src, row.dst), changed)
