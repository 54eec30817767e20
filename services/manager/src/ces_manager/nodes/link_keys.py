"""The keys by which nodes encrypt the links between them, as their agents report them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import structlog
from sqlalchemy import bindparam, select

from ces_common.db.tables import NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.reports import LinkReport
from ces_manager.errors import Conflict
from ces_manager.measurements import Measurements
from ces_manager.nodes.rows import emit_node, node_row

log = structlog.get_logger()
ANSWER_S = 5.0  # for an agent's answer
_KEYS = select(NodeRow.name, NodeRow.network, NodeRow.link_keys, NodeRow.link_port).where(
    NodeRow.name.in_(bindparam("nodes", expanding=True))
)


def with_news(tx: ReadTx, reports: Sequence[LinkReport]) -> list[LinkReport]:
    """The reports of members that tell other keys than before; most do not, and lock nothing."""
    rows = tx.session.connection().execute(_KEYS, {"nodes": [report.node for report in reports]})
    known = {row.name: (row.link_keys, row.link_port) for row in rows if row.network != "none"}
    return [report for report in reports if report.node in known and known[report.node] != _told(report)]


def take_reports(tx: WriteTx, reports: Iterable[LinkReport], measurements: Measurements) -> None:
    """Store nodes' keys. One that another node has already is not taken: packets for that node would go astray. Nobody
    proves that a key is its own, so whoever told it first keeps it, and operators are told of the other."""
    others = {
        key: name
        for name, keys in tx.session.execute(select(NodeRow.name, NodeRow.link_keys).where(NodeRow.link_keys != []))
        for key in keys
    }
    for report in reports:
        row = tx.session.get(NodeRow, report.node)
        keys, port = _told(report)
        if row is None or row.network == "none" or (row.link_keys, row.link_port) == (keys, port):
            continue
        if taken := next((others[key] for key in keys if others.get(key, row.name) != row.name), None):
            if measurements.key_refused(row.name) is None:
                log.warning("a key for encrypted links is another node's, and not taken", node=row.name, of=taken)
            measurements.refuse_key(row.name, taken, tx.now)
            continue
        row.link_keys, row.link_port = keys, port
        row.version = tx.version
        others |= dict.fromkeys(keys, row.name)
        emit_node(tx, row, "changed")


def forget_keys(row: NodeRow) -> None:
    """Nobody takes packets by these keys any more."""
    row.link_keys, row.link_port = [], 0


def check_rotatable(tx: ReadTx, node: str) -> None:
    """Raises NotFound, and Conflict where the node has no key that it could replace."""
    row = node_row(tx, node)
    if not row.link_keys:
        raise Conflict(f"node {node} encrypts no links")
    if row.state != "ready":
        raise Conflict(f"node {node} is unreachable")


def _told(report: LinkReport) -> tuple[list[str], int]:
    return (report.encryption.keys, report.encryption.port) if report.encryption is not None else ([], 0)
