"""What time alone brings about: nodes fall silent, leases end, states outlive their deadlines, history ages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, select

from ces_common.db.outbox import prune
from ces_common.db.tables import LIVE_STATES, AllocationRow, EventRow, InboxRow, JobRow, LeaseRow, NodeRow
from ces_common.db.uow import ReadTx, UnitOfWork, WriteTx
from ces_manager import lifecycle
from ces_manager.changes import change
from ces_manager.cluster import emit_node, jobs_on
from ces_manager.liveness import Cutoffs, cutoffs, gives_up
from ces_manager.policy import Policy


@dataclass(frozen=True, slots=True)
class Due:
    silent: list[str]  # nodes to be held unreachable
    lost: list[str]  # nodes whose workers have surely stopped
    late: list[str]  # jobs whose state outlived its deadline

    def __bool__(self) -> bool:
        return bool(self.silent or self.lost or self.late)


def tick(uow: UnitOfWork, policy: Policy, now: datetime) -> Due:
    """Do what is due at ``now``; says what that was. Looks first, so that an idle tick locks nothing."""
    cut = cutoffs(now, policy)
    with uow.read() as tx:
        due, aged = what_is_due(tx, cut), _has_aged(tx, cut)
    if due:
        with uow.write(now) as writing:
            due = what_is_due(writing, cut)
            _silent(writing, due.silent)
            for node in due.lost:
                _lost(writing, policy, node)
            for job in due.late:
                _late(writing, policy, job)
    if aged:
        with uow.bare_write() as session:
            prune(session, cut.history, policy.prune_limit)
    return due


def what_is_due(tx: ReadTx, cut: Cutoffs) -> Due:
    silent = (
        select(NodeRow.name)
        .join(LeaseRow, LeaseRow.node == NodeRow.name)
        .where(LeaseRow.heard_at < cut.heard, NodeRow.state == "ready")
    )
    lost = select(LeaseRow.node).where(
        LeaseRow.lease_until < cut.lease,
        exists()
        .where(AllocationRow.node == LeaseRow.node, AllocationRow.state.in_(LIVE_STATES))
        .where(JobRow.id == AllocationRow.job, JobRow.disconnect == "stop"),
    )
    late = select(JobRow.id).where(JobRow.deadline < cut.deadline)
    scalars = tx.session.scalars
    return Due(sorted(scalars(silent)), sorted(scalars(lost)), sorted(scalars(late)))


def _silent(tx: WriteTx, nodes: list[str]) -> None:
    for name in nodes:
        row = tx.session.get_one(NodeRow, name)
        row.state, row.version = "unreachable", tx.version
        emit_node(tx, row, "unreachable")


def _lost(tx: WriteTx, policy: Policy, node: str) -> None:
    why = f"node {node} was not heard for longer than its lease"
    for row in jobs_on(tx, node):
        if row.disconnect == "stop":
            change(tx, policy, row, lambda course: lifecycle.node_lost(course, node, why))


def _late(tx: WriteTx, policy: Policy, job: str) -> None:
    row = tx.session.get_one(JobRow, job)
    if row.deadline is None:  # another step of this tick has moved it on
        return
    row.late += 1
    why = f"{row.state.value} for more than {(tx.now - row.state_since).total_seconds():.0f} s"
    if gives_up(row.late, policy):
        why = f"{why}, the {row.late}. deadline missed in a row"
        change(tx, policy, row, lambda course: lifecycle.fail(course, why))
    else:
        change(tx, policy, row, lambda course: lifecycle.reschedule(course, why))


def _has_aged(tx: ReadTx, cut: Cutoffs) -> bool:
    events = select(EventRow.sequence).where(EventRow.time < cut.history, EventRow.published).limit(1)
    messages = select(InboxRow.id).where(InboxRow.consumed_at < cut.history).limit(1)
    return tx.session.scalar(events) is not None or tx.session.scalar(messages) is not None
