"""Moves of single tasks in a manager's database, and what agents and network-ctl say of them."""

from __future__ import annotations

from manager_world import World, direct, ring

from ces_common.db.move_tables import MoveRow
from ces_common.jobfile import JobFile
from ces_common.messages.moves import MoveRequest, MoveView
from ces_common.messages.records import AllocationRecord
from ces_common.messages.reports import Status, WorkerStatus
from ces_manager.jobs import network_readiness, past_moves, task_moves
from ces_manager.plans.move import commit_move


def apart(name: str = "apart", tasks: int = 2, **more: object) -> JobFile:
    """A job whose tasks begin again one by one."""
    return ring(name, tasks, restart={"scope": "task"}, **more)


def ask(world: World, job: str, task: str, node: str, rate: int = 10_000_000) -> str | None:
    """Commit a move with the direct link for every flow of the task. Raises what that raises."""
    record = world.job(job)
    where = dict.fromkeys((each.name for each in record.tasks), node)
    where |= {each.task: each.node for each in record.allocations} | {task: node}
    given = direct([flow for flow in record.flows if task in (flow.src, flow.dst)], where, rate)
    return world.write(lambda tx: commit_move(tx, job, MoveRequest(task=task, to=node), given))


def view(world: World, job: str) -> MoveView:
    with world.uow.read() as tx:
        return past_moves.latest_moves(tx, job)[0]


def state(world: World, job: str) -> str:
    return view(world, job).state.value


def place(world: World, job: str, task: str) -> AllocationRecord:
    return next(each for each in world.job(job).allocations if each.task == task)


def laid(world: World, job: str, move: str | None = None) -> None:
    """network-ctl: what the move needs is in place."""
    name = view(world, job).id if move is None else move
    world.write(lambda tx: network_readiness.move_ready(tx, job, name))


def gone(world: World, allocation: AllocationRecord) -> None:
    """Its agent confirms, at the present version, that nothing of it is left."""
    world.report(Status(node=allocation.node, generation=world.snapshot().version, workers=[]))


def says(world: World, allocation: AllocationRecord, what: str, exit_code: int | None = None) -> None:
    worker = WorkerStatus.model_validate(
        {"allocation": allocation.id, "incarnation": allocation.incarnation, "state": what, "exit_code": exit_code}
    )
    world.report(Status(node=allocation.node, generation=0, workers=[worker]))


def held_beside(world: World, job: str) -> tuple[int, int]:
    """How many allocations and flows are held beside those of the job's attempt."""
    with world.uow.read() as tx:
        move = tx.session.get(MoveRow, view(world, job).id)
        assert move is not None
        return int(task_moves.beside(tx, move) is not None), len(task_moves.flows_beside(tx, job))


def lose(world: World, node: str, steps: int = 12) -> None:
    """Five seconds a step, in which the others of a, b and c are heard; after 12 its lease has surely run out."""
    for _ in range(steps):
        world.beat(*({"a", "b", "c"} - {node}))
        world.wait(5)
        world.beat(*({"a", "b", "c"} - {node}))
        world.expire()
