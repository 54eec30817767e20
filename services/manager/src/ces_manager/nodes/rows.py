"""Rows of nodes, the jobs that hold something there, and the event of a change."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.events import NodeChanged
from ces_manager.errors import NotFound

Change = Literal["joined", "ready", "unreachable", "cordoned", "uncordoned", "drained", "changed", "forgotten"]


def node_row(tx: ReadTx, name: str) -> NodeRow:
    """Raises NotFound."""
    row = tx.session.get(NodeRow, name)
    if row is None:
        raise NotFound(f"no node {name}")
    return row


def jobs_on(tx: ReadTx, node: str) -> list[JobRow]:
    """Jobs with something on the node that holds capacity."""
    live = select(AllocationRow.job).where(AllocationRow.node == node, AllocationRow.state.in_(LIVE_STATES))
    return list(tx.session.scalars(select(JobRow).where(JobRow.id.in_(live)).order_by(JobRow.id)))


def emit_node(tx: WriteTx, row: NodeRow, what: Change) -> None:
    changed = NodeChanged(node=row.name, change=what, cpu=row.cpu, memory=row.memory, gpu=row.gpu)
    tx.emit("node", "changed", row.name, changed)
