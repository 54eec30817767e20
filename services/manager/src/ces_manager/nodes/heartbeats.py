"""Heartbeats renew the leases of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import bindparam, select, update

from ces_common.db.tables import LeaseRow, NodeRow
from ces_common.db.uow import UnitOfWork, WriteTx
from ces_manager.nodes.rows import emit_node
from ces_manager.text import storable

_RENEW = (
    update(LeaseRow)
    .where(LeaseRow.node == bindparam("the_node"))
    .values(boot=bindparam("the_boot"), heard_at=bindparam("now"), beats=LeaseRow.beats + 1)
)
BOOT_LENGTH = 64


def renew_leases(uow: UnitOfWork, beats: Iterable[tuple[str, str]], now: datetime) -> dict[str, str]:
    """Renew the leases of these (node, boot), heard at ``now``; answer the agents only after this has returned.

    Returns the states of those nodes: who is missing never joined, and has no lease. Takes no version lock, so that no
    lease waits behind what else is being written, but for one transaction of it on SQLite."""
    boots = dict(beats)
    if not boots:
        return {}
    # In one order everywhere, so that two managers cannot wait for each other's rows; storable, since one boot that the
    # database refuses would take the others' renewals with it.
    values = [
        {"the_node": node, "the_boot": storable(boot, BOOT_LENGTH), "now": now} for node, boot in sorted(boots.items())
    ]
    with uow.bare_write(urgent=True) as session:
        session.connection().execute(_RENEW, values)
    with uow.read() as tx:
        rows = tx.session.execute(select(NodeRow.name, NodeRow.state).where(NodeRow.name.in_(sorted(boots))))
        return {row.name: row.state for row in rows}


def welcome_back(tx: WriteTx, nodes: Iterable[str]) -> None:
    """Nodes that counted as unreachable were heard again. One may be gone since: another transaction forgot it."""
    for name in sorted(set(nodes)):
        row = tx.session.get(NodeRow, name)
        if row is not None and row.state == "unreachable":
            row.state, row.version = "ready", tx.version
            emit_node(tx, row, "ready")
