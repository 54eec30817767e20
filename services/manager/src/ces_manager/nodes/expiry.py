"""Expiry: nodes fall silent, leases end, jobs miss the deadlines of their states.

Time counts against a job only while everybody who is responsible for its next step is heard (``deadlines``).

Every manager judges by what its own failure detector has seen, on its steady clock. The database says only what
changed, never when something ends: a restarted manager counts from its first look, which can make it late but never
early."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy import select

from ces_common.db.move_tables import MoveRow
from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, LeaseRow, NodeRow
from ces_common.db.uow import ReadTx, UnitOfWork, WriteTx
from ces_common.disconnect import STOP, outlives_s
from ces_common.states import JobState
from ces_common.task_move import MoveState
from ces_manager.clock import Clock
from ces_manager.jobs import lifecycle
from ces_manager.jobs.task_moves import is_beside, lose_beside, lose_destination, move_of
from ces_manager.jobs.transitions import change, change_on
from ces_manager.nodes.failure_detector import FailureDetector, gives_up, is_lost, is_silent
from ces_manager.nodes.heartbeats import unheard
from ces_manager.nodes.lateness import Late, jobs_over, judge, waits_of
from ces_manager.nodes.rows import emit_node, jobs_on
from ces_manager.timeouts import Timeouts

LOST_AT_ONCE = 100  # nodes in one transaction: the loss of a site holds up nobody for long
UNSTARTED = (JobState.PLANNED, JobState.PREPARING)  # no compute document has named their workers yet
_HEARD = select(LeaseRow.node, LeaseRow.beats, NodeRow.state).join(NodeRow, NodeRow.name == LeaseRow.node)


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
        due = what_is_due(tx, timeouts, failure_detector)
    if due:
        with uow.write(clock.now()) as writing:
            due = what_is_due(writing, timeouts, failure_detector)
            due = replace(due, lost=unheard(writing, due.lost[:LOST_AT_ONCE], failure_detector))
            _silent(writing, due.silent)
            now = failure_detector.hearing()
            for node in due.lost:
                _lost(writing, timeouts, node, failure_detector.nodes.age(node, now))
            for job, late in due.late.items():
                _late(writing, timeouts, job, late)
    return due


def observe(uow: UnitOfWork, timeouts: Timeouts, failure_detector: FailureDetector) -> None:
    """Look, and leave it to another manager to carry out what is due."""
    with uow.read() as tx:
        what_is_due(tx, timeouts, failure_detector)


def what_is_due(tx: ReadTx, timeouts: Timeouts, failure_detector: FailureDetector) -> Due:
    """Look at everything that can expire, and return what has."""
    nodes = {row.node: row for row in tx.session.execute(_HEARD)}
    waits = waits_of(tx)
    now = failure_detector.hearing()  # after looking: nothing is younger than it is held to be
    heard = failure_detector.nodes.ages({name: row.beats for name, row in nodes.items()}, now)
    silent = {name for name, age in heard.items() if is_silent(age, timeouts)}
    unreachable = {name for name, row in nodes.items() if row.state == "unreachable"}
    hindered = jobs_over(tx, silent | unreachable) if waits.jobs or waits.workers or waits.moves else ()
    late, failure_detector.hindrances = judge(waits, heard, hindered, timeouts, failure_detector, now)
    return Due(
        sorted(silent - unreachable),
        _with_work(tx, heard, timeouts),
        late,
    )


def _with_work(tx: ReadTx, heard: Mapping[str, float], timeouts: Timeouts) -> list[str]:
    """The nodes with an allocation whose worker has surely stopped, or was never started. ``heard``: node -> seconds
    since it was last heard."""
    lost = sorted(name for name, age in heard.items() if is_lost(age, timeouts))
    if not lost:
        return []
    query = (
        select(AllocationRow.node, JobRow.disconnect, JobRow.state, is_beside().label("beside"))
        .join(JobRow, JobRow.id == AllocationRow.job)
        .outerjoin(MoveRow, MoveRow.id == JobRow.move)
        .where(AllocationRow.node.in_(lost), AllocationRow.state.in_(LIVE_STATES))
        .distinct()
    )
    rows = tx.session.execute(query)
    return sorted(
        {row.node for row in rows if row.beside or _gone(row.disconnect, row.state, heard[row.node], timeouts)}
    )


def _gone(disconnect: str, state: JobState, age_s: float, timeouts: Timeouts) -> bool:
    """Whether nothing of such a job runs any more on a node that was last heard ``age_s`` seconds ago."""
    return is_lost(age_s, timeouts, 0.0 if state in UNSTARTED else outlives_s(disconnect))


def _silent(tx: WriteTx, nodes: list[str]) -> None:
    for name in nodes:
        row = tx.session.get_one(NodeRow, name)
        row.state, row.version = "unreachable", tx.version
        emit_node(tx, row, "unreachable")


def _lost(tx: WriteTx, timeouts: Timeouts, node: str, age_s: float) -> None:
    lost = tx.session.get_one(NodeRow, node)
    lost.least_generation = lost.version = tx.version
    for row in jobs_on(tx, node):
        why = f"node {node} was not heard for longer than its lease"
        if _gone(row.disconnect, row.state, age_s, timeouts):
            why += "" if row.disconnect == STOP else f" and {row.disconnect}"
            walk = partial(lifecycle.node_lost, node=node, cause=lifecycle.Cause.NODE_LOST, reason=why)
            change_on(tx, row, node, walk, why, lost=True)
        else:  # its workers may run on, but what a move holds there never ran
            lose_beside(tx, row, node, why)


def _late(tx: WriteTx, timeouts: Timeouts, job: str, late: Late) -> None:
    row = tx.session.get_one(JobRow, job)
    if _move_late(tx, row, late):
        return
    if row.state is not late.state:  # another expiry of this round has moved it on
        return
    if not late.hindered:  # else another place may help, and nothing speaks against the job
        row.late += 1
    if gives_up(row.late, timeouts):
        why = f"{late.why}, the {row.late}. deadline missed in a row"
        change(tx, row, lambda course: lifecycle.fail(course, why))
    else:
        change(tx, row, lambda course: lifecycle.reschedule(course, lifecycle.Cause.LATE, late.why))


def _move_late(tx: WriteTx, row: JobRow, late: Late) -> bool:
    """A task that moves stays where it was, or goes back there: its job need not leave."""
    move = move_of(tx, row)
    if late.move:
        if move is not None and move.state is MoveState.RESERVED:
            lose_destination(tx, row, move, late.why)
        return True
    if move is None or move.state is not MoveState.STARTING or late.allocation != move.new:
        return False
    change(tx, row, partial(lifecycle.turn_back, reason=late.why))
    return True
