"""Heartbeats renew the leases of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from ces_common.db.tables import LeaseRow, NodeRow
from ces_common.db.uow import UnitOfWork
from ces_manager.nodes.rows import emit_node
from ces_manager.text import storable

_RENEW = (
    update(LeaseRow)
    .where(LeaseRow.node == bindparam("the_node"))
    .values(boot=bindparam("the_boot"), heard_at=bindparam("now"), beats=LeaseRow.beats + 1)
)
BOOT_LENGTH = 64


def renew_leases(uow: UnitOfWork, beats: Iterable[tuple[str, str]], now: datetime) -> set[str]:
    """Renew the leases of these (node, boot), heard at ``now``; answer the agents only after this has returned.

    Returns the names that never joined: they have no lease. The transactions are independent of each other; the version
    lock is taken only where a node counted as unreachable."""
    boots = dict(beats)
    if not boots:
        return set()
    with uow.bare_write() as session:
        _renew(session, boots, now)
    with uow.read() as tx:
        states = select(NodeRow.name, NodeRow.state).where(NodeRow.name.in_(sorted(boots)))
        known = {row.name: row.state for row in tx.session.execute(states)}
    silent = [name for name, state in known.items() if state == "unreachable"]
    if silent:
        with uow.write(now) as tx:
            for name in sorted(silent):
                row = tx.session.get_one(NodeRow, name)
                if row.state == "unreachable":
                    row.state, row.version = "ready", tx.version
                    emit_node(tx, row, "ready")
    return boots.keys() - known.keys()


def _renew(session: Session, boots: dict[str, str], now: datetime) -> None:
    # In one order everywhere, so that two managers cannot wait for each other's rows; storable, since one boot that the
    # database refuses would take the others' renewals with it.
    values = [
        {"the_node": node, "the_boot": storable(boot, BOOT_LENGTH), "now": now} for node, boot in sorted(boots.items())
    ]
    session.connection().execute(_RENEW, values)
