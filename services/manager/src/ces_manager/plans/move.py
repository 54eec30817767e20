"""Commit of a move: one task of a running job gets another node beside the one that it has, or nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ulid import ULID

from ces_common.access_nodes import Uncovered
from ces_common.db.move_tables import MoveRow
from ces_common.db.tables import AllocationRow, JobRow, NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.jobfile import Flow, Task
from ces_common.messages.moves import MoveCommitted, MoveRequest
from ces_common.messages.plans import FlowPlan
from ces_common.states import AllocationState, JobState
from ces_common.task_move import MoveKind, MoveState
from ces_manager.errors import Conflict, Invalid
from ces_manager.jobs.link_shares import reserve_links
from ces_manager.jobs.records import allocation_record, flow_record
from ces_manager.jobs.task_moves import AMOUNTS, ASIDE, move_of
from ces_manager.jobs.transitions import allocations_of, job_row
from ces_manager.plans.addresses import Exhausted
from ces_manager.plans.allocation import Placement, allocate_tasks, reserve_flows
from ces_manager.plans.application_fit import application_misfit, users_places
from ces_manager.plans.feasibility import move_misfit
from ces_manager.plans.reservations import held_flows
from ces_manager.plans.residual import residual_of


@dataclass(frozen=True, slots=True)
class OwnMove:
    """A move that CES makes by itself. ``why``: it looked at the job; ``requests``: that fall into the move;
    ``pays_after_s``: for how long its gain has to last to make up for them; ``first``: of several moves that end a
    broken limit together, so that the application may miss something until the last."""

    why: str
    requests: float
    pays_after_s: float
    first: bool


def check_movable(tx: ReadTx, job: str, asked: MoveRequest) -> list[Flow] | None:
    """The flows of the task that is to move; None where it is there, or on its way. Raises NotFound, Conflict,
    Invalid."""
    row = job_row(tx, job)
    move = move_of(tx, row)
    if move is not None:
        if (move.task, move.destination) == (asked.task, asked.to):
            return None
        raise Conflict(
            f"{move.task} of job {row.name} is being moved to {move.destination}; try again when it is there"
        )
    _check_job(row)
    task, allocation = _of_task(tx, row, asked.task)
    if allocation.node == asked.to:
        return None
    if task.user is not None:
        _check_access(tx, row, task, asked.to)
    if task.gpus:
        raise Invalid("task", f"{task.name} has GPU cards, and tasks with cards are not moved; place the job anew")
    if tx.session.get(NodeRow, asked.to) is None:
        raise Invalid("to", f"no node {asked.to}; ces get nodes lists them")
    if allocation.state is not AllocationState.RUNNING:
        raise Conflict(f"{task.name} is {allocation.state.value}; only a task that runs can be moved")
    return [flow for flow in row.flows if task.name in (flow.src, flow.dst)]


def commit_move(
    tx: WriteTx, job: str, asked: MoveRequest, given: Sequence[FlowPlan], own: OwnMove | None = None
) -> str | None:
    """Hold what the task needs on the other node, with these paths and rates of its flows. Returns what was so already,
    if nothing changed. ``own``: None where somebody asked for it. Raises NotFound, Conflict, Invalid."""
    flows = check_movable(tx, job, asked)
    row = job_row(tx, job)
    if flows is None:
        said = "runs on" if row.move is None else "is being moved to"
        return f"{asked.task} of job {row.name} {said} {asked.to} already"
    task, old = _of_task(tx, row, asked.task)
    places = {each.task: each.node for each in allocations_of(tx, [row])[row.id]}
    places |= {flow.src: node for flow in flows if (node := flow.data_node) is not None}
    moved = {(flow.src, flow.dst) for flow in given}
    kept = [flow for flow in held_flows(tx, row) if (flow.src, flow.dst) not in moved]
    after = [*given, *(FlowPlan(src=each.src, dst=each.dst, rate=each.rate, path=each.path) for each in kept)]
    nodes = {asked.to, *places.values()}.union(*(flow.path for flow in after))
    residual = residual_of(tx, nodes, {hop for flow in after for hop in pairwise(flow.path)})
    reason = move_misfit(task, asked.to, flows, given, places, residual)
    if reason is None and not (own is not None and own.first):
        there = places | {task.name: asked.to}
        reason = application_misfit(tx, row, row.tasks, row.flows, there, after, residual)
    if reason is not None:
        raise Conflict(f"{task.name} cannot be moved to {asked.to}: {reason}")
    try:
        new = _allocate(tx, row, task, asked.to)
        back = _allocate(tx, row, task, old.node)
        spare = reserve_flows(tx, Placement(row.id, ASIDE, [task], flows, {}, given))
    except Exhausted as error:
        raise Conflict(f"{task.name} cannot be moved to {asked.to}: {error}") from error
    for resource in AMOUNTS:  # the old copy has it until it is gone
        setattr(back, resource, 0)
    tx.session.add_all(spare)
    reserve_links(tx, spare)
    move = MoveRow(
        id=str(ULID()),
        job=row.id,
        attempt=row.attempt,
        task=task.name,
        kind=MoveKind.STATEFUL,
        state=MoveState.RESERVED,
        source=old.node,
        destination=asked.to,
        old=old.id,
        new=new.id,
        back=back.id,
        began_at=tx.now,
        changed_at=tx.now,
        why=None if own is None else own.why,
        requests=None if own is None else own.requests,
        pays_after_s=None if own is None else own.pays_after_s,
    )
    tx.session.add(move)
    row.move, row.version = move.id, tx.version
    committed = MoveCommitted(
        move=move.id,
        job=row.id,
        attempt=row.attempt,
        task=task.name,
        kind=move.kind,
        source=move.source,
        destination=move.destination,
        old=old.id,
        new=allocation_record(new),
        back=allocation_record(back),
        flows=[flow_record(flow) for flow in spare],
        why=move.why,
    )
    tx.emit("move", "committed", move.id, committed, job=row.id)
    return None


def _check_job(row: JobRow) -> None:
    """Raises Conflict."""
    if row.state is not JobState.RUNNING:
        raise Conflict(f"job {row.name} is {row.state.value}; only tasks of a running job can be moved")
    if row.part is not None:
        raise Conflict(f"job {row.name} is split over regions; its tasks are not moved")
    if row.size is not None:
        raise Conflict(f"job {row.name} is malleable; its tasks move when its size changes, and not one by one")
    if row.restart.scope != "task":
        raise Conflict(
            f"when a task of job {row.name} ends, all begin again; submit it with restart: {{scope: task}} to have its "
            "tasks moved one by one"
        )


def _check_access(tx: ReadTx, row: JobRow, task: Task, node: str) -> None:
    """A user's task goes to where its user is now. Raises Conflict, Invalid."""
    try:
        access = users_places(tx, row)[task.user or ""]
    except Uncovered as error:
        raise Conflict(f"{task.name} belongs at user {task.user}: {error}") from error
    if node != access:
        raise Invalid(
            "to",
            f"{task.name} runs at the access node of user {task.user}, which is {access}; `ces user move` moves "
            "the user",
        )


def _of_task(tx: ReadTx, row: JobRow, name: str) -> tuple[Task, AllocationRow]:
    """Raises Invalid."""
    task = next((each for each in row.tasks if each.name == name), None)
    if task is None:
        names = ", ".join(each.name for each in row.tasks[:5])
        raise Invalid("task", f"job {row.name} has no task {name}; its tasks are {names}")
    return task, next(each for each in allocations_of(tx, [row])[row.id] if each.task == name)


def _allocate(tx: WriteTx, row: JobRow, task: Task, node: str) -> AllocationRow:
    (made,) = allocate_tasks(tx, Placement(row.id, ASIDE, [task], (), {task.name: node}, ()))
    tx.session.add(made)
    tx.session.flush()  # so that what is allocated next has another address
    return made
