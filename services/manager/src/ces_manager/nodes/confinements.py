"""How nodes confine their workers, as their agents report it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, select

from ces_common.db.tables import NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.confinement import ConfinementReport
from ces_manager.nodes.rows import emit_node

_TOLD = select(NodeRow.name, NodeRow.confinement).where(NodeRow.name.in_(bindparam("nodes", expanding=True)))


def with_news(tx: ReadTx, reports: Sequence[ConfinementReport]) -> list[ConfinementReport]:
    """The reports of members that tell something else than before; most do not, and lock nothing."""
    rows = tx.session.connection().execute(_TOLD, {"nodes": [report.node for report in reports]})
    known = {row.name: row.confinement for row in rows}
    return [report for report in reports if report.node in known and known[report.node] != report.confinement]


def take_reports(tx: WriteTx, reports: Iterable[ConfinementReport]) -> None:
    """Store what nodes tell."""
    for report in reports:
        row = tx.session.get(NodeRow, report.node)
        if row is not None and row.confinement != report.confinement:
            row.confinement, row.version = report.confinement, tx.version
            emit_node(tx, row, "changed")
