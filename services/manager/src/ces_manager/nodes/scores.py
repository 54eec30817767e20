"""How fast nodes are, as their agents measured it. An agent may lie: what it tells is bounded, shown as its word, and
decides about nothing but tasks that say of which class their work is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sqlalchemy import bindparam, select

from ces_common.db.tables import NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.scores import Measured, ScoreReport
from ces_common.rates import SenderRate
from ces_manager.errors import Conflict
from ces_manager.nodes.rows import node_row

ANSWER_S: Final = 5.0  # for an agent's answer that it begins
CHANGES_PER_S, CHANGES_AT_ONCE = 0.02, 4
_TOLD = select(NodeRow.name, NodeRow.measured).where(NodeRow.name.in_(bindparam("nodes", expanding=True)))


class Changes:
    """Which reports are taken in: an agent measures seldom, so one that always tells something else is heard no more
    often than that. ``steady``: seconds of a clock that only goes forward."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._rate = SenderRate(CHANGES_PER_S, CHANGES_AT_ONCE)

    def with_news(self, tx: ReadTx, reports: Sequence[ScoreReport]) -> list[ScoreReport]:
        """The reports of members that tell something else than before; most do not, and lock nothing."""
        rows = tx.session.connection().execute(_TOLD, {"nodes": [report.node for report in reports]})
        known = {row.name: row.measured for row in rows}
        return [
            report
            for report in reports
            if report.node in known
            and _differs(known[report.node], report)
            and self._rate.allows(report.node, self._steady())
        ]


def take_reports(tx: WriteTx, reports: Iterable[ScoreReport]) -> None:
    """Store what agents measured."""
    for report in reports:
        row = tx.session.get(NodeRow, report.node)
        if row is not None and _differs(row.measured, report):
            row.measured = Measured(at=tx.now, measurements=report.measurements)
            row.version = tx.version  # the scheduler reads speeds


def check_measurable(tx: ReadTx, node: str) -> None:
    """Raises NotFound, Conflict."""
    if node_row(tx, node).state != "ready":
        raise Conflict(f"node {node} is unreachable, so it cannot be asked to measure: try again once it is ready")


def _differs(known: Measured | None, report: ScoreReport) -> bool:
    return known is None or known.measurements != report.measurements
