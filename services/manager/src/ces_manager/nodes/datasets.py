"""The datasets that nodes offer, as their agents report them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, select

from ces_common.db.tables import NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.reports import DataReport
from ces_manager.nodes.rows import emit_node

_OFFERS = select(NodeRow.name, NodeRow.datasets, NodeRow.data_port).where(
    NodeRow.name.in_(bindparam("nodes", expanding=True))
)


def with_news(tx: ReadTx, reports: Sequence[DataReport]) -> list[DataReport]:
    """The reports that say anything new; most do not, and lock nothing. Those of nodes that have not joined, or were
    forgotten, never do."""
    rows = tx.session.connection().execute(_OFFERS, {"nodes": [report.node for report in reports]})
    known = {row.name: (row.datasets, row.data_port) for row in rows}
    return [report for report in reports if report.node in known and known[report.node] != _offer(report)]


def take_reports(tx: WriteTx, reports: Iterable[DataReport]) -> None:
    """Store what nodes offer."""
    for report in reports:
        row = _changed_by(tx, report)
        if row is not None:
            row.datasets, row.data_port = _offer(report)
            row.version = tx.version
            emit_node(tx, row, "changed")


def _changed_by(tx: ReadTx, report: DataReport) -> NodeRow | None:
    row = tx.session.get(NodeRow, report.node)
    return None if row is None or (row.datasets, row.data_port) == _offer(report) else row


def _offer(report: DataReport) -> tuple[list[str], int]:
    return sorted(set(report.datasets)), report.port
