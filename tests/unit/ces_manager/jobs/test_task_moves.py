"""The move of a task in the manager's database: its steps, what is held at each, and what becomes of it when a node is
lost, the job leaves, or a step takes too long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from manager_world import World
from moved_tasks import apart, ask, gone, held_beside, laid, lose, place, says, state, view
from world_audit import findings

from ces_common.states import AllocationState, JobState
from ces_manager.jobs import commands
from ces_manager.nodes import operations

TASK = "w-0"


@pytest.fixture
def job(world: World) -> Iterator[str]:
    """Its tasks run on a and b; there is nothing on c. The log is audited when the test is over."""
    made = world.submit(apart(disconnect="stop"))
    world.run(made, ["a", "b"])
    yield made
    ends = {(a, b): 10**8 for a in "abc" for b in "abc" if a != b}
    assert findings(world, ends) == []


def start_there(world: World, job: str) -> None:
    """As far as the new copy is to start."""
    old = place(world, job, TASK)
    ask(world, job, TASK, "c")
    laid(world, job)
    gone(world, old)
    assert state(world, job) == "starting"


def test_a_task_is_stopped_and_starts_elsewhere_when_it_is_surely_gone(world: World, job: str) -> None:
    old, numbers = place(world, job, TASK), [flow.number for flow in world.job(job).reserved]
    assert ask(world, job, TASK, "c") is None
    assert (state(world, job), held_beside(world, job)) == ("reserved", (1, 2))
    assert ask(world, job, TASK, "c") == f"{TASK} of job apart is being moved to c already"
    assert place(world, job, TASK) == old, "it runs on until the network is there"
    laid(world, job)
    assert place(world, job, TASK).state is AllocationState.STOPPING
    assert world.job(job).state is JobState.RUNNING
    gone(world, old)
    new = place(world, job, TASK)
    assert (new.node, new.state, new.id != old.id) == ("c", AllocationState.PENDING, True)
    assert held_beside(world, job) == (1, 2), "what it had is held for its return"
    assert [flow.number for flow in world.job(job).reserved] == numbers
    assert sorted(flow.path for flow in world.job(job).reserved) == [["b", "c"], ["c", "b"]]
    says(world, new, "running")
    assert (state(world, job), world.job(job).moving) == ("done", None)
    assert held_beside(world, job) == (0, 0)
    assert place(world, job, "w-1").incarnation == 1, "the other task noticed nothing"
    world.tell(job, "exited", exit_code=0)
    assert world.job(job).state is JobState.SUCCEEDED


def test_it_moves_on_and_back(world: World, job: str) -> None:
    for node in ("c", "a", "b"):
        old = place(world, job, TASK)
        ask(world, job, TASK, node)
        laid(world, job)
        gone(world, old)
        says(world, place(world, job, TASK), "running")
        assert (state(world, job), place(world, job, TASK).node) == ("done", node)


@pytest.mark.parametrize("how", ["refused", "exited"])
def test_a_task_that_cannot_start_there_goes_back(world: World, job: str, how: str) -> None:
    start_there(world, job)
    says(world, place(world, job, TASK), how, None if how == "refused" else 1)
    assert state(world, job) == "returning"
    assert view(world, job).reason == "w-0 did not start on c" + ("" if how == "refused" else " (exit code 1)")
    back = place(world, job, TASK)
    assert (back.node, back.state) == ("a", AllocationState.PENDING)
    assert sorted(flow.path for flow in world.job(job).reserved) == [["a", "b"], ["b", "a"]]
    says(world, back, "running")
    assert (state(world, job), held_beside(world, job)) == ("kept", (0, 0))
    assert (world.job(job).state, world.job(job).restarts) == (JobState.RUNNING, 0)


def test_a_start_that_takes_too_long_is_given_up_once_nothing_of_it_is_left(world: World, job: str) -> None:
    start_there(world, job)
    for _ in range(20):
        world.beat("a", "b", "c")
        world.wait(world.timeouts.starting_s / 10)
        world.beat("a", "b", "c")
        world.expire()
        if state(world, job) != "starting":
            break
    assert state(world, job) == "clearing"
    gone(world, place(world, job, TASK))
    says(world, place(world, job, TASK), "running")
    assert (state(world, job), place(world, job, TASK).node) == ("kept", "a")
    assert world.job(job).state is JobState.RUNNING


def test_a_network_that_is_never_laid_leaves_the_task_where_it_is(world: World, job: str) -> None:
    ask(world, job, TASK, "c")
    for _ in range(20):
        world.beat("a", "b", "c")
        world.wait(world.timeouts.preparing_s / 10)
        world.beat("a", "b", "c")
        world.expire()
    assert (state(world, job), held_beside(world, job)) == ("kept", (0, 0))
    assert "was not in place on c" in (view(world, job).reason or "")
    assert place(world, job, TASK).state is AllocationState.RUNNING


@pytest.mark.parametrize(
    ("node", "when", "then", "where"),
    [
        ("c", "reserved", "kept", "a"),
        ("c", "stopping", "returning", "a"),
        ("c", "starting", "returning", "a"),
        ("a", "reserved", "kept", None),
        ("a", "stopping", "starting", "c"),
        ("a", "starting", "starting", "c"),
        ("b", "starting", "failed", None),
    ],
)
@pytest.mark.parametrize("how", ["lost", "drained"])
def test_where_a_node_is_lost_or_left(
    world: World, job: str, node: str, when: str, then: str, where: str | None, how: str
) -> None:
    """``where``: the task's node afterwards; None: its job is placed anew."""
    old = place(world, job, TASK)
    ask(world, job, TASK, "c")
    if when != "reserved":
        laid(world, job)
    if when == "starting":
        gone(world, old)
    if how == "lost":
        lose(world, node)
    else:
        world.write(lambda tx: operations.drain(tx, node))
    if when == "stopping":
        gone(world, old)
    if how == "drained" and (node, when) == ("c", "starting"):
        assert state(world, job) == "clearing"
        gone(world, place(world, job, TASK))
    assert state(world, job) == then
    if where is None:
        assert world.job(job).state in (JobState.RESCHEDULING, JobState.QUEUED)
        assert held_beside(world, job) == (0, 0)
    else:
        assert (world.job(job).state, place(world, job, TASK).node) == (JobState.RUNNING, where)
        says(world, place(world, job, TASK), "running")
        assert state(world, job) in ("kept", "done")
    world.cancel(job)
    world.confirm(job)


def test_where_neither_node_has_it_any_more_the_job_is_placed_anew(world: World, job: str) -> None:
    start_there(world, job)
    world.write(lambda tx: operations.drain(tx, "a"))
    assert held_beside(world, job) == (0, 0)
    says(world, place(world, job, TASK), "refused")
    assert (state(world, job), world.job(job).state) == ("failed", JobState.RESCHEDULING)
    world.confirm(job)
    assert world.job(job).state is JobState.QUEUED


@pytest.mark.parametrize("steps", range(4))
def test_a_job_that_ends_meanwhile_gives_everything_back(world: World, job: str, steps: int) -> None:
    old = place(world, job, TASK)
    ask(world, job, TASK, "c")
    for act in (lambda: laid(world, job), lambda: gone(world, old), lambda: None)[:steps]:
        act()
    world.cancel(job)
    assert held_beside(world, job) == (0, 0)
    assert state(world, job) == ("kept" if steps == 0 else "failed")
    world.confirm(job)
    assert world.job(job).released


def test_a_paused_job_goes_on_with_its_move_when_it_is_resumed(world: World, job: str) -> None:
    old = place(world, job, TASK)
    ask(world, job, TASK, "c")
    world.write(lambda tx: commands.pause_job(tx, job))
    laid(world, job)
    assert state(world, job) == "reserved", "what is frozen is not told to end"
    world.write(lambda tx: commands.resume_job(tx, job))
    laid(world, job)
    world.write(lambda tx: commands.pause_job(tx, job))
    gone(world, old)
    assert state(world, job) == "starting"
    world.write(lambda tx: commands.resume_job(tx, job))
    says(world, place(world, job, TASK), "running")
    assert state(world, job) == "done"


def test_late_facts_change_nothing(world: World, job: str) -> None:
    ask(world, job, TASK, "c")
    laid(world, job, "0" * 26)
    assert state(world, job) == "reserved", "of another move"
    start = place(world, job, TASK)
    laid(world, job)
    laid(world, job)
    gone(world, start)
    new = place(world, job, TASK)
    says(world, start, "exited", 1)
    laid(world, job)
    assert state(world, job) == "starting"
    says(world, new.model_copy(update={"incarnation": 7}), "running")
    assert state(world, job) == "starting"


def test_a_task_that_fails_before_it_is_told_to_end_stays_and_starts_again(world: World, job: str) -> None:
    ask(world, job, TASK, "c")
    says(world, place(world, job, TASK), "exited", 1)
    assert (state(world, job), held_beside(world, job)) == ("kept", (0, 0))
    assert view(world, job).reason == "w-0 ended by itself on a"
    assert (place(world, job, TASK).incarnation, world.job(job).restarts) == (2, 1)
