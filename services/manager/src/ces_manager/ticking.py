"""What time alone brings about: nodes fall silent, leases end, states outlive their deadlines.

Every manager judges by what it has observed itself on its steady clock (``liveness``). The database says only what
changed, never when something ends: a restarted manager, and one whose time of day differs, count from when they looked
first, which can make them late and never early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, LeaseRow, NodeRow
from ces_common.db.uow import ReadTx, UnitOfWork, WriteTx
from ces_common.states import AllocationState, JobState
from ces_manager import lifecycle
from ces_manager.changes import change
from ces_manager.clock import Clock
from ces_manager.cluster import emit_node, jobs_on
from ces_manager.liveness import Vigil, gives_up, is_lost, is_silent
from ces_manager.policy import Policy

Steady = Callable[[], float]

_TIMED = [state for state in JobState if Policy().patience(state) is not None]
_WAITS = select(JobRow.id, JobRow.state, JobRow.attempt, JobRow.restarts).where(JobRow.state.in_(_TIMED))
_RESTARTING = (
    select(AllocationRow.id, AllocationRow.incarnation, AllocationRow.task, AllocationRow.node, AllocationRow.job)
    .join(JobRow, (JobRow.id == AllocationRow.job) & (JobRow.attempt == AllocationRow.attempt))
    # A job that starts has a deadline as a whole; one that is paused starts nothing.
    .where(AllocationRow.state == AllocationState.PENDING, JobRow.state == JobState.RUNNING)
    .order_by(AllocationRow.job, AllocationRow.rank)
)
_HEARD = select(LeaseRow.node, LeaseRow.beats, NodeRow.state).join(NodeRow, NodeRow.name == LeaseRow.node)


@dataclass(frozen=True, slots=True)
class Late:
    """Why a job in ``state`` has waited too long."""

    state: JobState
    why: str


@dataclass(frozen=True, slots=True)
class Due:
    silent: list[str] = field(default_factory=list)  # nodes to be held unreachable
    lost: list[str] = field(default_factory=list)  # nodes whose workers have surely stopped
    late: dict[str, Late] = field(default_factory=dict)  # jobs that have missed a deadline

    def __bool__(self) -> bool:
        return bool(self.silent or self.lost or self.late)


def tick(uow: UnitOfWork, policy: Policy, vigil: Vigil, clock: Clock) -> Due:
    """Do what is due now; says what that was. Looks first, so that an idle tick locks nothing."""
    with uow.read() as tx:
        due = what_is_due(tx, policy, vigil, clock.steady)
    if due:
        with uow.write(clock.now()) as writing:
            due = what_is_due(writing, policy, vigil, clock.steady)
            _silent(writing, due.silent)
            for node in due.lost:
                _lost(writing, node)
            for job, late in due.late.items():
                _late(writing, policy, job, late)
    return due


def what_is_due(tx: ReadTx, policy: Policy, vigil: Vigil, steady: Steady) -> Due:
    """Look at all that can become due, and say what has."""
    nodes = {row.node: row for row in tx.session.execute(_HEARD)}
    waits = {row.id: row for row in tx.session.execute(_WAITS)}
    restarting = {row.id: row for row in tx.session.execute(_RESTARTING)}
    now = steady()  # after looking: nothing seen is younger than it is held to be
    heard = vigil.nodes.ages({name: row.beats for name, row in nodes.items()}, now)
    waited = vigil.jobs.ages({job: (row.state, row.attempt, row.restarts) for job, row in waits.items()}, now)
    started = vigil.workers.ages({member: row.incarnation for member, row in restarting.items()}, now)
    late = {}
    for job, age in sorted(waited.items()):
        state = waits[job].state
        patience = policy.patience(state)
        if patience is not None and age > patience:
            late[job] = Late(state, f"{state.value} for more than {patience:.0f} s")
    for member, age in started.items():
        if age > policy.starting_s:
            row = restarting[member]
            why = f"{row.task} on {row.node} has not started again for more than {policy.starting_s:.0f} s"
            late.setdefault(row.job, Late(JobState.RUNNING, why))
    return Due(
        sorted(name for name, age in heard.items() if nodes[name].state == "ready" and is_silent(age, policy)),
        _with_work(tx, sorted(name for name, age in heard.items() if is_lost(age, policy))),
        late,
    )


def _with_work(tx: ReadTx, nodes: list[str]) -> list[str]:
    """Those of the nodes that hold something of a job whose workers stop with the lease."""
    if not nodes:
        return []
    query = (
        select(AllocationRow.node)
        .join(JobRow, JobRow.id == AllocationRow.job)
        .where(AllocationRow.node.in_(nodes), AllocationRow.state.in_(LIVE_STATES), JobRow.disconnect == "stop")
    )
    return sorted(set(tx.session.scalars(query)))


def _silent(tx: WriteTx, nodes: list[str]) -> None:
    for name in nodes:
        row = tx.session.get_one(NodeRow, name)
        row.state, row.version = "unreachable", tx.version
        emit_node(tx, row, "unreachable")


def _lost(tx: WriteTx, node: str) -> None:
    why = f"node {node} was not heard for longer than its lease"
    for row in jobs_on(tx, node):
        if row.disconnect == "stop":
            change(tx, row, lambda course: lifecycle.node_lost(course, node, why))


def _late(tx: WriteTx, policy: Policy, job: str, late: Late) -> None:
    row = tx.session.get_one(JobRow, job)
    if row.state is not late.state:  # another step of this tick has moved it on
        return
    row.late += 1
    if gives_up(row.late, policy):
        why = f"{late.why}, the {row.late}. deadline missed in a row"
        change(tx, row, lambda course: lifecycle.fail(course, why))
    else:
        change(tx, row, lambda course: lifecycle.reschedule(course, late.why))
