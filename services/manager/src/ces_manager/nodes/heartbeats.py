"""Heartbeats renew the leases of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from sqlalchemy import BigInteger, String, bindparam, or_, select, true, update

from ces_common.db.tables import ClusterRow, LeaseRow, NodeRow
from ces_common.db.uow import UnitOfWork, WriteTx
from ces_manager.nodes.failure_detector import FailureDetector, is_lost
from ces_manager.nodes.rows import emit_node
from ces_manager.text import storable
from ces_manager.timeouts import Timeouts

_MACHINE = bindparam("the_machine", type_=String)
_MAY_HOLD = or_(
    _MACHINE == "", LeaseRow.machine.in_(("", _MACHINE)), LeaseRow.beats == bindparam("the_silence", type_=BigInteger)
)
_RENEW = (
    update(LeaseRow)
    .where(LeaseRow.node == bindparam("the_node"), _MAY_HOLD)
    .values(boot=bindparam("the_boot"), machine=_MACHINE, heard_at=bindparam("now"), beats=LeaseRow.beats + 1)
)
_JOINED = (
    select(NodeRow.name, NodeRow.state, NodeRow.reclaimed, NodeRow.least_generation, LeaseRow.machine, ClusterRow.epoch)
    .join(LeaseRow, LeaseRow.node == NodeRow.name)
    .join(ClusterRow, true())  # it has one row
    .where(NodeRow.name.in_(bindparam("names", expanding=True)))
)
BOOT_LENGTH = 64
NEVER = -1  # no count of heartbeats


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks for a node's lease: ``boot`` names the start of its agent, ``machine`` the boot of its machine."""

    node: str
    boot: str
    machine: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """What a node's grant depends on. ``epoch``, ``least_generation``: of the desired state that it must have heard.
    ``held``: whether the lease is the asker's now. It is not while another machine, or an earlier boot, may hold it.
    ``reclaimed``: whether the device's owner has it, as far as is known."""

    state: str
    epoch: str
    least_generation: int
    held: bool = True
    reclaimed: bool = False


def renew_leases(
    uow: UnitOfWork, askers: Iterable[Asker], now: datetime, silences: Mapping[str, int] = MappingProxyType({})
) -> dict[str, Joined]:
    """Renew the leases for these, heard at ``now``; answer the agents only after this has returned. A lease is renewed
    for the machine that holds it. Another gets it once it has surely ended: ``silences`` has, for nodes that have been
    silent for that long, the count of heartbeats that they stood at, and it must still be the same.

    Returns what is known of those nodes, read after their leases are written: a node that another transaction gives up
    as lost waits for it (see ``unheard``), and is told what followed. Who is missing never joined, and has no lease.
    Takes no version lock, so that no lease waits behind what else is being written, but for one transaction of it on
    SQLite."""
    known = {asker.node: asker for asker in askers}
    if not known:
        return {}
    # In one order everywhere, so that two managers cannot wait for each other's rows; storable, since one boot that the
    # database refuses would take the others' renewals with it.
    machines = {node: storable(asker.machine, BOOT_LENGTH) for node, asker in known.items()}
    values = [
        {
            "the_node": node,
            "the_boot": storable(known[node].boot, BOOT_LENGTH),
            "the_machine": machines[node],
            "the_silence": silences.get(node, NEVER),
            "now": now,
        }
        for node in sorted(known)
    ]
    with uow.bare_write(urgent=True) as session:
        session.connection().execute(_RENEW, values)
    with uow.read() as tx:
        rows = tx.session.execute(_JOINED, {"names": sorted(known)})
        return {
            row.name: Joined(
                row.state, row.epoch, row.least_generation, row.machine == machines[row.name], row.reclaimed
            )
            for row in rows
        }


def ended_leases(failure_detector: FailureDetector, nodes: Iterable[str], timeouts: Timeouts) -> dict[str, int]:
    """Those of the nodes whose leases have surely ended, with the count of heartbeats that they have shown since."""
    now, ended = failure_detector.hearing(), {}
    for node in nodes:
        stamp = failure_detector.nodes.stamp(node)
        if isinstance(stamp, int) and is_lost(failure_detector.nodes.age(node, now), timeouts):
            ended[node] = stamp
    return ended


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
