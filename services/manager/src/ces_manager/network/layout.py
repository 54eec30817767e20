"""Where nodes lie on the map of the cluster."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from ces_common.db.tables import LinkRow, NodeRow, PositionRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.dashboard import Layout


def layout(tx: ReadTx) -> Layout:
    rows = tx.session.execute(select(PositionRow.node, PositionRow.x, PositionRow.y).order_by(PositionRow.node))
    return Layout(positions={node: [x, y] for node, x, y in rows})


def put_layout(tx: WriteTx, asked: Layout) -> None:
    """Keep these positions beside those of other nodes. What is neither a node nor the end of a link by now is left
    out, and forgotten."""
    known = set(tx.session.scalars(select(NodeRow.name)))
    known.update(*tx.session.execute(select(LinkRow.src, LinkRow.dst).distinct()))
    kept = tx.session.scalars(select(PositionRow.node))
    replaced = [name for name in kept if name in asked.positions or name not in known]
    tx.session.execute(delete(PositionRow).where(PositionRow.node.in_(replaced)))
    rows = [{"node": name, "x": x, "y": y} for name, (x, y) in asked.positions.items() if name in known]
    if rows:
        tx.session.execute(insert(PositionRow), rows)
