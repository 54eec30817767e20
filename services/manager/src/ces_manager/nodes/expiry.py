"""Expiry: nodes fall silent, leases end, jobs miss the deadlines of their states.

Every manager judges by what its own failure detector has seen, on its steady clock. The database says only what
changed, never when something ends: a restarted manager counts from its first look, which can make it late but never
early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlalchemy import select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, LeaseRow, NodeRow
from ces_common.db.uow import ReadTx, UnitOfWork, WriteTx
from ces_common.states import AllocationState, JobState
from ces_manager.clock import Clock
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change
from ces_manager.nodes.failure_detector import FailureDetector, gives_up, is_lost, is_silent
from ces_manager.nodes.heartbeats import unheard
from ces_manager.nodes.rows import emit_node, jobs_on
from ces_manager.timeouts import Timeouts

LOST_AT_ONCE = 100  # nodes in one transaction: the loss of a site holds up nobody for long
Steady = Callable[[], float]
_TIMED = [state for state in JobState if Timeouts().patience(state) is not None]
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
    silent: list[str] = field(default_factory=list)  # nodes that count as unreachable from now on
    lost: list[str] = field(default_factory=list)  # nodes whose workers have surely stopped
    late: dict[str, Late] = field(default_factory=dict)  # jobs that have missed a deadline

    def __bool__(self) -> bool:
        return bool(self.silent or self.lost or self.late)


def expire(uow: UnitOfWork, timeouts: Timeouts, failure_detector: FailureDetector, clock: Clock) -> Due:
    """Carry out what is due now, of lost nodes at most LOST_AT_ONCE, and return it. Looks first without a lock, so that
    an idle round locks nothing."""
    with uow.read() as tx:
        due = what_is_due(tx, timeouts, failure_detector, clock.steady)
    if due:
        with uow.write(clock.now()) as writing:
            due = what_is_due(writing, timeouts, failure_detector, clock.steady)
            due = replace(due, lost=unheard(writing, due.lost[:LOST_AT_ONCE], failure_detector))
            _silent(writing, due.silent)
            for node in due.lost:
                _lost(writing, node)
            for job, late in due.late.items():
                _late(writing, timeouts, job, late)
    return due


def what_is_due(tx: ReadTx, timeouts: Timeouts, failure_detector: FailureDetector, steady: Steady) -> Due:
    """Look at everything that can expire, and return what has."""
    nodes = {row.node: row for row in tx.session.execute(_HEARD)}
    waits = {row.id: row for row in tx.session.execute(_WAITS)}
    restarting = {row.id: row for row in tx.session.execute(_RESTARTING)}
    now, hearing = steady(), failure_detector.hearing()  # after looking: nothing is younger than it is held to be
    heard = failure_detector.nodes.ages({name: row.beats for name, row in nodes.items()}, hearing)
    waited = failure_detector.jobs.ages(
        {job: (row.state, row.attempt, row.restarts) for job, row in waits.items()}, now
    )
    started = failure_detector.workers.ages({member: row.incarnation for member, row in restarting.items()}, now)
    late = {}
    for job, age in sorted(waited.items()):
        state = waits[job].state
        patience = timeouts.patience(state)
        if patience is not None and age > patience:
            late[job] = Late(state, f"{state.value} for more than {patience:.0f} s")
    for member, age in started.items():
        if age > timeouts.starting_s:
            row = restarting[member]
            why = f"{row.task} on {row.node} has not started again for more than {timeouts.starting_s:.0f} s"
            late.setdefault(row.job, Late(JobState.RUNNING, why))
    return Due(
        sorted(name for name, age in heard.items() if nodes[name].state == "ready" and is_silent(age, timeouts)),
        _with_work(tx, sorted(name for name, age in heard.items() if is_lost(age, timeouts))),
        late,
    )


def _with_work(tx: ReadTx, nodes: list[str]) -> list[str]:
    """The nodes with an allocation of a job whose workers stop with the lease."""
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
    lost = tx.session.get_one(NodeRow, node)
    lost.least_generation = lost.version = tx.version
    for row in jobs_on(tx, node):
        if row.disconnect == "stop":
            change(tx, row, lambda course: lifecycle.node_lost(course, node, why))


def _late(tx: WriteTx, timeouts: Timeouts, job: str, late: Late) -> None:
    row = tx.session.get_one(JobRow, job)
    if row.state is not late.state:  # another expiry of this round has moved it on
        return
    row.late += 1
    if gives_up(row.late, timeouts):
        why = f"{late.why}, the {row.late}. deadline missed in a row"
        change(tx, row, lambda course: lifecycle.fail(course, why))
    else:
        change(tx, row, lambda course: lifecycle.reschedule(course, late.why))
