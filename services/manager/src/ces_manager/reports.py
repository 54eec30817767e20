"""What agents say: signs of life, and the states of workers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, LeaseRow, NodeRow
from ces_common.db.uow import ReadTx, UnitOfWork, WriteTx
from ces_common.messages.reports import Status
from ces_manager import lifecycle
from ces_manager.changes import as_member, change
from ces_manager.cluster import emit_node

_ON_NODE = (
    select(AllocationRow, JobRow.state)
    .join(JobRow, JobRow.id == AllocationRow.job)
    .where(AllocationRow.node == bindparam("node"), AllocationRow.state.in_(LIVE_STATES))
)
_RENEW = (
    update(LeaseRow)
    .where(LeaseRow.node == bindparam("the_node"))
    .values(boot=bindparam("the_boot"), heard_at=bindparam("now"), beats=LeaseRow.beats + 1)
)
BOOT_LENGTH = 64


def matters(tx: ReadTx, status: Status) -> bool:
    """Whether a report moves anything; most do not, and then nothing need be locked."""
    return bool(_moved_by(tx, status))


def _generation(tx: ReadTx, status: Status) -> int:
    """The generation reported; 0 where it is one of a former database."""
    return status.generation if status.epoch in ("", tx.cluster().epoch) else 0


def _moved_by(tx: ReadTx, status: Status) -> list[str]:
    generation = _generation(tx, status)
    return sorted(
        {
            row.job
            for row, state in tx.session.execute(_ON_NODE, {"node": status.node})
            if lifecycle.matters(state, as_member(row), generation, status.workers)
        }
    )


def agent_status(tx: WriteTx, status: Status) -> None:
    """Move allocations and jobs on by what a node's agent says of its workers."""
    generation = _generation(tx, status)
    for job in _moved_by(tx, status):
        row = tx.session.get_one(JobRow, job)
        change(
            tx,
            row,
            lambda course: lifecycle.report(
                course, generation, status.workers, lambda member: member.node == status.node
            ),
        )


def heartbeats(uow: UnitOfWork, beats: Iterable[tuple[str, str]], now: datetime) -> set[str]:
    """Renew the leases of these (node, boot), heard at ``now``; answer the agents only after this has returned.

    Gives the names that never joined: they have no lease. Several transactions, none of which matters to another; the
    version lock is taken only where a node was held to be unreachable."""
    boots = dict(beats)
    if not boots:
        return set()
    with uow.bare_write() as session:
        _renew_leases(session, boots, now)
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


def _renew_leases(session: Session, boots: dict[str, str], now: datetime) -> None:
    # In one order everywhere, so that two managers cannot wait for each other's rows.
    values = [{"the_node": node, "the_boot": _legible(boot), "now": now} for node, boot in sorted(boots.items())]
    session.connection().execute(_RENEW, values)


def _legible(boot: str) -> str:
    """What a database takes, whatever an agent made up: one that is refused would take the others' renewals with it."""
    return boot[:BOOT_LENGTH].replace("\0", "\N{REPLACEMENT CHARACTER}")
