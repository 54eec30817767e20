"""The datasets that nodes offer, as their agents report them."""

from __future__ import annotations

from ces_common.db.tables import NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.reports import DataReport
from ces_manager.nodes.rows import emit_node


def matters(tx: ReadTx, report: DataReport) -> bool:
    """Whether a report says anything new; most do not, and lock nothing."""
    row = tx.session.get(NodeRow, report.node)
    return row is not None and (row.datasets, row.data_port) != _offer(report)


def take_report(tx: WriteTx, report: DataReport) -> None:
    """Store what a node offers. Reports of nodes that have not joined, or were forgotten, are ignored."""
    row = tx.session.get(NodeRow, report.node)
    if row is None or (row.datasets, row.data_port) == _offer(report):
        return
    row.datasets, row.data_port = _offer(report)
    row.version = tx.version
    emit_node(tx, row, "changed")


def _offer(report: DataReport) -> tuple[list[str], int]:
    return sorted(set(report.datasets)), report.port
