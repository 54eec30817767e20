"""The datasets that nodes offer, as their agents report them."""

from __future__ import annotations

from collections.abc import Iterable

from ces_common.db.tables import NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.reports import DataReport
from ces_manager.nodes.rows import emit_node


def with_news(tx: ReadTx, reports: Iterable[DataReport]) -> list[DataReport]:
    """The reports that say anything new; most do not, and lock nothing. Those of nodes that have not joined, or were
    forgotten, never do."""
    return [report for report in reports if _changed_by(tx, report) is not None]


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
