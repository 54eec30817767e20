"""The move of a task that is under way: what its job holds for it beside the task's present allocation, and the steps
that follow from what becomes of its allocations. The table is ``ces_common.task_move``.

What is held beside is of attempt 0, so that whatever reads a job's present attempt finds one allocation for each task.
When the old copy is surely gone, the two change places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, and_, case, delete, select

from ces_common.db.move_tables import LastLookRow, MoveRow
from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, NodeRow, ReservationRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.fault_points import fault_point
from ces_common.messages.adjustments import LastLook
from ces_common.messages.moves import MoveChanged
from ces_common.states import AllocationState, JobState
from ces_common.task_move import OVER, MoveFact, MoveState, after
from ces_manager.jobs.job_events import emit_allocation
from ces_manager.jobs.lifecycle import Course, Member, reclaimed
from ces_manager.jobs.link_shares import release_links, reserve_links

A, S, F = AllocationState, MoveState, MoveFact
ASIDE = 0  # the attempt of what is not in use now
STAYS = frozenset({JobState.RUNNING, JobState.PAUSED})  # in which a move goes on
AMOUNTS = ("cpu", "memory", "gpu")
_RAN = frozenset({A.RUNNING, A.SUCCEEDED})
_AHEAD = (S.RESERVED, S.STOPPING)  # what is held beside is for the new copy; later for the old one's return


def move_of(tx: ReadTx, row: JobRow) -> MoveRow | None:
    """The move that is under way."""
    return None if row.move is None else tx.session.get(MoveRow, row.move)


def last_look(tx: ReadTx, job: str) -> LastLook | None:
    """At an application that CES changes by itself."""
    row = tx.session.get(LastLookRow, job)
    return None if row is None else LastLook.model_validate(row, from_attributes=True)


def coming(tx: ReadTx, row: JobRow) -> str | None:
    """The allocation that its task has moved to and that does not run yet, or is to end again."""
    move = move_of(tx, row)
    return move.new if move is not None and move.state in (S.STARTING, S.CLEARING) else None


def leaving(tx: ReadTx, row: JobRow) -> str | None:
    """The allocation that its task moves away from, and that is to end."""
    move = move_of(tx, row)
    return move.old if move is not None and move.state is S.STOPPING else None


def beside(tx: ReadTx, move: MoveRow) -> AllocationRow | None:
    """What is held beside the task's present allocation."""
    name = move.new if move.state in _AHEAD else move.back
    row = tx.session.get(AllocationRow, name)
    return row if row is not None and row.attempt == ASIDE else None


def is_beside() -> ColumnElement[bool]:
    """The same of an allocation's row, where its job's move is joined."""
    held = case((MoveRow.state.in_(_AHEAD), MoveRow.new), else_=MoveRow.back)
    return and_(AllocationRow.attempt == ASIDE, AllocationRow.id == held)


def all_beside(tx: ReadTx, row: JobRow) -> Sequence[AllocationRow]:
    """The same, with what holds an address and no more."""
    of_job = (AllocationRow.job == row.id) & (AllocationRow.attempt == ASIDE)
    query = select(AllocationRow).where(of_job, AllocationRow.state.in_(LIVE_STATES))
    return tx.session.scalars(query.order_by(AllocationRow.id)).all()


def flows_beside(tx: ReadTx, job: str) -> Sequence[ReservationRow]:
    """In order of their numbers."""
    query = select(ReservationRow).where(ReservationRow.job == job, ReservationRow.attempt == ASIDE)
    return tx.session.scalars(query.order_by(ReservationRow.number)).all()


def settle(tx: WriteTx, row: JobRow, course: Course) -> bool:
    """Go on by what has become of the allocations. To be called after each change of the job. Returns whether the task
    runs nowhere now."""
    move = move_of(tx, row)
    while move is not None and (fact := _fact(tx, move, course.members)) is not None:
        step(tx, row, move, fact, _why(tx, move, fact, course.members))
        if move.state in OVER:
            return move.state is S.FAILED
    return False


def leave(tx: WriteTx, row: JobRow, course: Course) -> None:
    """The job leaves its place: give up what its move holds beside. To be called before its allocations change."""
    move = move_of(tx, row)
    if move is None:
        return
    over = S.FAILED
    if move.state is S.RESERVED:
        over = S.KEPT
    elif move.state is S.STARTING and _state(course.members, move.new) in _RAN:
        over = S.DONE
    elif move.state is S.RETURNING and _state(course.members, move.back) in _RAN:
        over = S.KEPT
    _enter(tx, row, move, over, None if over is S.DONE else f"the job is {course.state.value}")


def step(tx: WriteTx, row: JobRow, move: MoveRow, fact: MoveFact, reason: str | None = None) -> bool:
    """Take in a fact. Returns whether the move went on: one that its state does not wait for changes nothing."""
    then = after(move.kind, move.state, fact)
    if then is move.state:
        return False
    _enter(tx, row, move, then, reason)
    fault_point(f"move-{then.value}")
    return True


def lose_beside(tx: WriteTx, row: JobRow, node: str, reason: str) -> None:
    """A node is lost, or to be left, where a move may hold something that never ran."""
    move = move_of(tx, row)
    held = None if move is None else beside(tx, move)
    if move is None or held is None or held.node != node:
        return
    if held.id == move.new:
        lose_destination(tx, row, move, reason)
    else:
        lose_source(tx, row, move)


def lose_spare(tx: WriteTx, row: JobRow, reason: str) -> None:
    """Links do not carry what is held beside the job's flows: its task stays, or cannot go back."""
    move = move_of(tx, row)
    if move is None:
        return
    if move.state in _AHEAD:
        lose_destination(tx, row, move, reason)
    else:
        lose_source(tx, row, move)


def lose_destination(tx: WriteTx, row: JobRow, move: MoveRow, reason: str) -> None:
    """The node that the task was to go to is lost, or takes nothing more. What has begun there is another matter."""
    if step(tx, row, move, F.NEW_FAILED, reason):
        return
    if move.state is S.STOPPING:  # it goes back as soon as it may
        move.reason = reason
        _tell(tx, row, move, move.state, [move.new])
        _drop(tx, [move.new])
        _drop_flows(tx, row.id)


def lose_source(tx: WriteTx, row: JobRow, move: MoveRow) -> None:
    """The task can go back no more."""
    if tx.session.get(AllocationRow, move.back) is None:
        return
    _tell(tx, row, move, move.state, [move.back])
    _drop(tx, [move.back])
    if move.state not in _AHEAD:  # else it is to go there still
        _drop_flows(tx, row.id)


def _fact(tx: ReadTx, move: MoveRow, members: Mapping[str, Member]) -> MoveFact | None:
    """What is known that the move waits for. Nothing is of an allocation that came into use just now."""
    match move.state:
        case S.RESERVED:
            return None if _state(members, move.old) is A.RUNNING else F.OLD_FAILED
        case S.STOPPING:
            return F.OLD_GONE if _over(members, move.old) else None
        case S.CARRYING:  # a task brings nothing along yet
            return F.CARRIED if _unfit(tx, move) is None else F.NEW_FAILED
        case S.STARTING:
            if _state(members, move.new) in _RAN:
                return F.NEW_RUNS
            return F.NEW_FAILED if _state(members, move.new) not in (None, A.PENDING) else None
        case S.CLEARING:
            return F.NEW_GONE if _over(members, move.new) else None
        case S.RETURNING:
            if tx.session.get(AllocationRow, move.back) is None:
                return F.OLD_FAILED
            return F.OLD_RUNS if _state(members, move.back) in _RAN else None
    return None


def _unfit(tx: ReadTx, move: MoveRow) -> str | None:
    """Why nothing is to start at the destination."""
    there = tx.session.get(NodeRow, move.destination)
    if there is None:
        return f"node {move.destination} is gone"
    if there.reclaimed:
        return reclaimed(move.destination)
    if there.state != "ready":
        return f"node {move.destination} is {there.state}"
    if tx.session.get(AllocationRow, move.new) is None:
        return f"nothing is held on {move.destination} any more"
    return None


def _why(tx: ReadTx, move: MoveRow, fact: MoveFact, members: Mapping[str, Member]) -> str | None:
    """What is told of a fact by which a move comes to nothing."""
    if fact is F.NEW_FAILED and move.state is S.CARRYING:
        return f"{move.task} was not started on {move.destination}: {_unfit(tx, move)}"
    if fact is F.OLD_FAILED and move.state is S.RESERVED:
        return f"{move.task} ended by itself on {move.source}"
    if fact is not F.NEW_FAILED or move.new not in members:
        return None
    new = members[move.new]
    code = "" if new.exit_code is None else f" (exit code {new.exit_code})"
    return f"{move.task} did not start on {move.destination}{code}" + (f": {new.reason}" if new.reason else "")


def _state(members: Mapping[str, Member], name: str) -> AllocationState | None:
    return members[name].state if name in members else None


def _over(members: Mapping[str, Member], name: str) -> bool:
    return name in members and members[name].over


def _enter(tx: WriteTx, row: JobRow, move: MoveRow, then: MoveState, reason: str | None) -> None:
    """Everything that the new state asks of the database."""
    previous, move.state, move.changed_at = move.state, then, tx.now
    move.reason = move.reason or reason
    _tell(tx, row, move, previous)
    if then is S.CARRYING:
        _put_aside(tx, move.old)
        _hold_back(tx, move)
    elif then is S.STARTING:
        _exchange_flows(tx, row)
        _bring_in(tx, row, move.new)
        if beside(tx, move) is None:  # it cannot go back
            _drop_flows(tx, row.id)
    elif then is S.RETURNING:
        if previous is S.CLEARING:
            _put_aside(tx, move.new)
            _exchange_flows(tx, row)
        _drop(tx, [move.new])
        _drop_flows(tx, row.id)
        _bring_in(tx, row, move.back)
    elif then in OVER:
        _drop(tx, [move.new, move.back])
        _drop_flows(tx, row.id)
        row.move = None


def _tell(tx: WriteTx, row: JobRow, move: MoveRow, previous: MoveState, dropped: Sequence[str] = ()) -> None:
    row.version = tx.version
    changed = MoveChanged(
        move=move.id,
        job=row.id,
        attempt=move.attempt,
        task=move.task,
        allocation=_present(move, previous),
        previous=previous,
        state=move.state,
        reason=None if move.state is S.DONE else move.reason,
        dropped=list(dropped),
    )
    tx.emit("move", "changed", move.id, changed, job=row.id)


def _present(move: MoveRow, previous: MoveState) -> str:
    """The task's allocation in the state that it has reached."""
    last = previous if move.state in OVER else move.state
    if last in (S.STARTING, S.CLEARING):
        return move.new
    return move.back if last is S.RETURNING else move.old


def _put_aside(tx: WriteTx, name: str) -> None:
    """An allocation that is over leaves its attempt."""
    tx.session.get_one(AllocationRow, name).attempt = ASIDE
    tx.session.flush()


def _bring_in(tx: WriteTx, row: JobRow, name: str) -> None:
    """What was held beside is the task's present allocation."""
    allocation = tx.session.get(AllocationRow, name)
    if allocation is not None:
        allocation.attempt = row.attempt
        tx.session.flush()
        emit_allocation(tx, row, allocation, None)


def _hold_back(tx: WriteTx, move: MoveRow) -> None:
    """What the old copy had is held for its return."""
    old, back = tx.session.get_one(AllocationRow, move.old), tx.session.get(AllocationRow, move.back)
    for resource in AMOUNTS if back is not None else ():
        setattr(back, resource, getattr(old, resource))


def _exchange_flows(tx: WriteTx, row: JobRow) -> None:
    """The task's flows take what was held beside, which holds what they had. Numbers stay."""
    spare = {(flow.src, flow.dst): flow for flow in flows_beside(tx, row.id)}
    query = select(ReservationRow).where(ReservationRow.job == row.id, ReservationRow.attempt == row.attempt)
    present = [flow for flow in tx.session.scalars(query) if (flow.src, flow.dst) in spare]
    for flow in present:
        other = spare[flow.src, flow.dst]
        flow.rate, other.rate = other.rate, flow.rate
        flow.path, other.path = other.path, flow.path
    both = [*present, *spare.values()]
    release_links(tx, both)
    reserve_links(tx, both)


def _drop(tx: WriteTx, names: Sequence[str]) -> None:
    """What is held beside never ran, so nothing of it stays as history."""
    held = AllocationRow.id.in_(names), AllocationRow.attempt == ASIDE, AllocationRow.state.in_(LIVE_STATES)
    tx.session.flush()
    for row in tx.session.scalars(select(AllocationRow).where(*held)):
        tx.session.delete(row)
    tx.session.flush()


def _drop_flows(tx: WriteTx, job: str) -> None:
    spare = flows_beside(tx, job)
    release_links(tx, spare)
    of_job = (ReservationRow.job == job) & (ReservationRow.attempt == ASIDE)
    tx.session.flush()
    tx.session.execute(delete(ReservationRow).where(of_job))
