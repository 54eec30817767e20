"""Rows of nodes, the jobs that hold something there, and the event of a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, NodeRow, RevokedKeyRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.events import NodeChanged
from ces_manager.errors import NotFound

Change = Literal[
    "joined", "ready", "unreachable", "cordoned", "uncordoned", "drained", "reclaimed", "lent", "changed", "forgotten"
]


def node_row(tx: ReadTx, name: str) -> NodeRow:
    """Raises NotFound."""
    row = tx.session.get(NodeRow, name)
    if row is None:
        raise NotFound(f"no node {name}: ces get nodes lists those that there are")
    return row


def jobs_on(tx: ReadTx, node: str) -> list[JobRow]:
    """Jobs with something on the node that holds capacity."""
    live = select(AllocationRow.job).where(AllocationRow.node == node, AllocationRow.state.in_(LIVE_STATES))
    return list(tx.session.scalars(select(JobRow).where(JobRow.id.in_(live)).order_by(JobRow.id)))


def tasks_on(tx: ReadTx, node: str) -> Sequence[str]:
    """Tasks that hold something on the node, as job and task; one that moves may hold more than one thing there."""
    query = (
        select(JobRow.name, AllocationRow.task)
        .join(JobRow, JobRow.id == AllocationRow.job)
        .where(AllocationRow.node == node, AllocationRow.state.in_(LIVE_STATES))
        .order_by(JobRow.id, AllocationRow.rank)
    )
    return list(dict.fromkeys(f"{job}/{task}" for job, task in tx.session.execute(query)))


def revoke_key(tx: WriteTx, row: NodeRow) -> None:
    """The key by which the node is a member now is never good again, whatever becomes of the node."""
    if tx.session.get(RevokedKeyRow, row.public_key) is None:
        tx.session.add(RevokedKeyRow(public_key=row.public_key, node=row.name, revoked_at=tx.now))


def emit_node(tx: WriteTx, row: NodeRow, what: Change) -> None:
    changed = NodeChanged(node=row.name, change=what, cpu=row.cpu, memory=row.memory, gpu=row.gpu, cards=row.cards)
    tx.emit("node", "changed", row.name, changed)
