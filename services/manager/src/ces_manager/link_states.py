"""What is known of links beside their configuration: whether they are up, and what an active probe measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from ces_common import subjects
from ces_common.db.tables import LinkRow, NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.events import LinkChanged
from ces_common.messages.records import LinkRecord
from ces_common.messages.reports import LinkReport, LinkStatus
from ces_manager.capacity import Hop
from ces_manager.errors import NotFound

_UNKNOWN = LinkRow(state="up")
_STATE = ("state", "state_since", "state_reason")
_MEASURED = ("measured", "measured_at", "round_trip_us")


def matters(tx: ReadTx, report: LinkReport) -> bool:
    """Whether a report says anything new; most do not, and then nothing need be locked."""
    return bool(_moved_by(tx, report))


def take_report(tx: WriteTx, report: LinkReport) -> list[Hop]:
    """Write down the states of a node's outgoing links as its agent sees them; gives those that changed. Ignored are
    links that no topology has, and what a node said before it joined again without a data plane."""
    moved = _moved_by(tx, report)
    for row, status in moved:
        row.state, row.state_since, row.state_reason = status.state, tx.now, _legible(status.reason)
        _changed(tx, row)
    return [(row.src, row.dst) for row, _ in moved]


def take_measurement(tx: WriteTx, src: str, dst: str, bandwidth: int | None, round_trip_s: float | None) -> None:
    """Keep what an active probe found of a link; ``bandwidth`` in bit/s, None where it could not be measured, and then
    what was measured before is void. Raises NotFound."""
    row = tx.session.get(LinkRow, (src, dst))
    if row is None:
        raise NotFound(f"no link {src} -> {dst}")
    before = row.measured
    row.measured, row.measured_at = bandwidth, tx.now
    row.round_trip_us = None if round_trip_s is None else round(round_trip_s * 1e6)
    if bandwidth != before:
        _changed(tx, row)


def forget(tx: WriteTx, node: str) -> None:
    """Nobody looks after a node's outgoing links any more: they count as up, and for what is configured."""
    for row in tx.session.scalars(select(LinkRow).where(LinkRow.src == node)):
        before = row.state, row.measured
        if row.state != "up":
            row.state, row.state_since, row.state_reason = "up", tx.now, None
        row.measured = row.measured_at = row.round_trip_us = None
        if before != ("up", None):
            _changed(tx, row)


def live_states(tx: ReadTx, links: Iterable[LinkRecord]) -> dict[Hop, dict[str, Any]]:
    """For each of these links, what the rows that are there know of it, as columns; a link that is not there is up. A
    measurement is void where the capacity, the kind or the medium is another."""
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
    changed = LinkChanged(
        src=row.src,
        dst=row.dst,
        state="up" if row.state == "up" else "down",
        reason=row.state_reason,
        bandwidth=row.bandwidth,
        measured=row.measured,
    )
    tx.emit("link", "changed", subjects.link_id(row.src, row.dst), changed)


def _legible(reason: str | None) -> str | None:
    """What a database takes, whatever an agent made up."""
    return None if reason is None else reason.replace("\0", "\N{REPLACEMENT CHARACTER}")
