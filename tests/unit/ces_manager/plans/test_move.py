"""What is moved and what is refused, and that capacity is held at both nodes."""

from __future__ import annotations

import pytest
from manager_world import World, full_mesh, ring
from moved_tasks import apart, ask, gone, laid, place, says, state
from world_audit import findings

from ces_common.messages.moves import MoveRequest
from ces_common.messages.plans import FlowPlan
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import JobState
from ces_manager.errors import Conflict, Invalid, ManagerError
from ces_manager.nodes import operations
from ces_manager.plans.move import commit_move

NODES = ["a", "b", "c"]


def running(world: World, **more: object) -> str:
    job = world.submit(apart(**more))
    world.run(job, ["a", "b"])
    return job


@pytest.mark.parametrize(
    ("task", "node", "error", "words"),
    [
        ("w-9", "c", Invalid, "task: job apart has no task w-9; its tasks are w-0, w-1"),
        ("w-0", "z", Invalid, "to: no node z; ces get nodes lists them"),
    ],
)
def test_a_refusal_names_the_field_and_a_remedy(
    world: World, task: str, node: str, error: type[ManagerError], words: str
) -> None:
    job = running(world)
    with pytest.raises(error) as refused:
        ask(world, job, task, node)
    assert str(refused.value) == words


def test_jobs_whose_tasks_cannot_move_one_by_one_are_refused(world: World) -> None:
    gang = world.submit(ring("gang"))
    with pytest.raises(Conflict, match="job gang is queued; only tasks of a running job can be moved"):
        ask(world, gang, "w-0", "c")
    world.run(gang, ["a", "b"])
    with pytest.raises(Conflict, match=r"all begin again; submit it with restart: \{scope: task\}"):
        ask(world, gang, "w-0", "c")
    growing = world.submit(ring("growing", elastic={"group": "w", "workers": {"min": 1, "max": 2}}))
    world.run(growing, ["a", "b"])
    with pytest.raises(Conflict, match="is malleable"):
        ask(world, growing, "w-0", "c")


def test_asking_again_does_no_harm(world: World) -> None:
    job = running(world)
    assert ask(world, job, "w-0", "a") == "w-0 of job apart runs on a already"
    assert ask(world, job, "w-0", "c") is None
    assert ask(world, job, "w-0", "c") == "w-0 of job apart is being moved to c already"


def test_one_move_of_a_job_at_a_time(world: World) -> None:
    job = running(world)
    ask(world, job, "w-0", "c")
    with pytest.raises(Conflict, match="w-0 of job apart is being moved to c; try again when it is there"):
        ask(world, job, "w-1", "c")
    with pytest.raises(Conflict, match="w-0 of job apart is being moved to c"):
        ask(world, job, "w-0", "b")


def test_what_does_not_fit_is_refused_and_changes_nothing(world: World) -> None:
    job = running(world)
    before = world.snapshot().version
    assert world.revise(job, FlowPlan(src="w-0", dst="w-1", rate=50_000_000, path=["a", "c", "b"])) is None
    with pytest.raises(Conflict, match=r"link a › c has .* left"):  # of 95 Mbit/s
        ask(world, job, "w-1", "c", rate=50_000_000)
    world.write(lambda tx: operations.cordon(tx, "c"))
    with pytest.raises(Conflict, match="w-0 cannot be moved to c: node c is cordoned"):
        ask(world, job, "w-0", "c")
    with pytest.raises(Conflict, match="does not give exactly the flows of w-0"):
        world.write(lambda tx: commit_move(tx, job, MoveRequest(task="w-0", to="c"), []))
    assert world.job(job).moving is None
    assert world.snapshot().version > before


def test_capacity_is_held_at_both_nodes_until_the_task_runs(world: World) -> None:
    """Each node has room for four such tasks."""
    job = running(world)
    old = place(world, job, "w-0")
    ask(world, job, "w-0", "c")
    full = world.submit(ring("full", 4))
    assert "node c has" in str(world.commit(world.propose(full, ["c"])))
    laid(world, job)
    assert "node a has" in str(world.commit(world.propose(full, ["a"])))
    gone(world, old)
    assert "node a has" in str(world.commit(world.propose(full, ["a"]))), "held for its return"
    says(world, place(world, job, "w-0"), "running")
    assert world.commit(world.propose(full, ["a"])) is None
    assert state(world, job) == "done"


def test_while_a_task_moves_its_job_is_left_alone(world: World) -> None:
    job = running(world, priority=10, preemption="suspend")
    ask(world, job, "w-0", "c")
    flow = FlowPlan(src="w-0", dst="w-1", rate=20_000_000, path=["a", "b"])
    assert world.revise(job, flow) == "a task of job apart is being moved"
    urgent = world.submit(ring("urgent", priority=90))
    assert world.preempt(urgent, job) == "a task of job apart is being moved"
    assert world.preempt(urgent, job, how="stop") is None, "whatever ends its place ends the move"
    world.confirm(job)
    assert world.job(job).state is JobState.QUEUED
    assert findings(world, {(a, b): 10**8 for a in NODES for b in NODES if a != b}) == []


def test_data_that_a_task_reads_comes_by_another_path(world: World) -> None:
    """Workers that share the host's network get another port, also where both nodes are one host."""
    for name in ("x", "y"):
        world.add_nodes(name, network="none")
    world.put_topology(full_mesh([*NODES, "x", "y"]))
    job = world.submit(apart(tasks=1))
    world.run(job, ["x"])
    old = place(world, job, "w-0")
    ask(world, job, "w-0", "y")
    laid(world, job)
    gone(world, old)
    new = place(world, job, "w-0")
    assert (new.node, new.address, new.port != old.port) == ("y", old.address, True)
    worker = WorkerStatus(allocation=new.id, incarnation=1, state="running")
    world.report(Status(node="y", generation=0, workers=[worker]))
    assert state(world, job) == "done"
