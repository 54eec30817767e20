"""Heartbeats renew the leases of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, select, true, update

from ces_common.db.tables import ClusterRow, LeaseRow, NodeRow
from ces_common.db.uow import UnitOfWork, WriteTx
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.nodes.rows import emit_node
from ces_manager.text import storable

_RENEW = (
    update(LeaseRow)
    .where(LeaseRow.node == bindparam("the_node"))
    .values(boot=bindparam("the_boot"), heard_at=bindparam("now"), beats=LeaseRow.beats + 1)
)
_JOINED = (
    select(NodeRow.name, NodeRow.state, NodeRow.least_generation, ClusterRow.epoch)
    .join(ClusterRow, true())  # it has one row
    .where(NodeRow.name.in_(bindparam("names", expanding=True)))
)
BOOT_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Joined:
    """What a node's grant depends on. ``epoch``, ``least_generation``: of the desired state that it must have heard."""

    state: str
    epoch: str
    least_generation: int


def renew_leases(uow: UnitOfWork, beats: Iterable[tuple[str, str]], now: datetime) -> dict[str, Joined]:
    """Renew the leases of these (node, boot), heard at ``now``; answer the agents only after this has returned.

    Returns what is known of those nodes, read after their leases are written: a node that another transaction gives up
    as lost waits for it (see ``unheard``), and is told what followed. Who is missing never joined, and has no lease.
    Takes no version lock, so that no lease waits behind what else is being written, but for one transaction of it on
    SQLite."""
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
        rows = tx.session.execute(_JOINED, {"names": sorted(boots)})
        return {row.name: Joined(row.state, row.epoch, row.least_generation) for row in rows}


def unheard(tx: WriteTx, nodes: Sequence[str], failure_detector: FailureDetector) -> list[str]:
    """Those of the nodes that were not heard since the failure detector last looked. Until this transaction ends nobody
    renews their leases: a heartbeat that comes now is answered with what is decided here."""
    lease = select(LeaseRow.beats).where(LeaseRow.node == bindparam("node")).with_for_update()
    # One by one in the order in which leases are renewed: the database may sort names in another.
    beats = {node: tx.session.scalar(lease, {"node": node}) for node in sorted(nodes)}
    return [node for node, count in beats.items() if failure_detector.nodes.shows(node, count)]


def welcome_back(tx: WriteTx, nodes: Iterable[str]) -> None:
    """Nodes that counted as unreachable were heard again. One may be gone since: another transaction forgot it."""
    for name in sorted(set(nodes)):
        row = tx.session.get(NodeRow, name)
        if row is not None and row.state == "unreachable":
            row.state, row.version = "ready", tx.version
            emit_node(tx, row, "ready")
