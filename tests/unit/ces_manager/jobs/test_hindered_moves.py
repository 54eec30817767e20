"""Moves of tasks whose nodes, links or neighbours fail meanwhile: the move is concerned, and the job only where it must
be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from manager_world import World, full_mesh, ring
from moved_tasks import apart, ask, gone, held_beside, laid, lose, place, says, state, view
from world_audit import findings

from ces_common.db.history_tables import KeyframeRow
from ces_common.db.uow import WriteTx
from ces_common.messages.moves import MoveRequest
from ces_common.messages.plans import FlowPlan
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import AllocationState, JobState
from ces_manager.jobs import commands
from ces_manager.nodes import operations
from ces_manager.plans.move import commit_move
from ces_manager.replay.keyframes import past_of
from ces_manager.replay.past import flows_on_links, held_on_links, held_on_nodes, packed
from ces_manager.replay.replay import past_at

TASK = "w-0"
Submit = Callable[[str], str]


def follow(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, what a replay of the log says is held is compared with what the tables say."""
    with world.uow.read() as tx:
        begin = past_of(tx, world.now)
    with world.uow.bare_write() as session:
        session.merge(KeyframeRow(sequence=begin.sequence, time=world.now, body=packed(begin)))
    write = world.write

    def write_and_look(act: Callable[[WriteTx], object]) -> object:
        result = write(act)
        with world.uow.read() as tx:
            past, present = past_at(tx, world.now), past_of(tx, world.now)
        for held in (held_on_nodes, held_on_links, flows_on_links):
            assert held(past) == held(present)
        return result

    monkeypatch.setattr(world, "write", write_and_look)


@pytest.fixture
def submit(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submit]:
    """Submits a job with such a ``disconnect``, whose tasks run on a and b; there is nothing on c. The log is replayed
    after each step, and audited when the test is over."""

    def submit(disconnect: str) -> str:
        made = world.submit(apart(disconnect=disconnect))
        world.run(made, ["a", "b"])
        follow(world, monkeypatch)
        return made

    yield submit
    ends = {(a, b): 10**8 for a in "abcd" for b in "abcd" if a != b}
    assert findings(world, ends) == []


def move(world: World, job: str, until: str) -> None:
    """Towards c."""
    old = place(world, job, TASK)
    ask(world, job, TASK, "c")
    if until != "reserved":
        laid(world, job)
    if until == "starting":
        gone(world, old)
    assert state(world, job) == until


def test_a_task_is_not_sent_to_a_node_that_is_away(world: World, submit: Submit) -> None:
    job = submit("keep")
    old = place(world, job, TASK)
    move(world, job, "stopping")
    lose(world, "c", steps=5)
    assert held_beside(world, job) == (1, 2), "it is away, and not lost"
    gone(world, old)
    assert (state(world, job), place(world, job, TASK).node) == ("returning", "a")
    assert view(world, job).reason == "w-0 was not started on c: node c is unreachable"
    says(world, place(world, job, TASK), "running")
    assert (state(world, job), held_beside(world, job)) == ("kept", (0, 0))


@pytest.mark.parametrize("when", ["reserved", "stopping", "starting"])
def test_what_never_ran_does_not_outlive_a_lease(world: World, submit: Submit, when: str) -> None:
    """Though the job's workers go on on nodes that are not heard."""
    job = submit("keep")
    old = place(world, job, TASK)
    move(world, job, when)
    lose(world, "a" if when == "starting" else "c")
    assert world.job(job).state is JobState.RUNNING
    if when == "reserved":
        assert (state(world, job), held_beside(world, job)) == ("kept", (0, 0))
        assert view(world, job).reason == "node c was not heard for longer than its lease"
        assert place(world, job, TASK) == old
    elif when == "stopping":
        gone(world, old)
        assert (state(world, job), place(world, job, TASK).node) == ("returning", "a")
    else:
        assert (state(world, job), held_beside(world, job)) == ("starting", (0, 0))


def test_a_move_ends_with_its_destination_also_where_another_task_goes_on_there(world: World, submit: Submit) -> None:
    job = submit("keep")
    ask(world, job, TASK, "b")
    assert state(world, job) == "reserved"
    lose(world, "b")
    assert (state(world, job), world.job(job).state) == ("kept", JobState.RUNNING)
    assert place(world, job, "w-1").state is AllocationState.RUNNING
    before = world.snapshot().version
    lose(world, "b", steps=1)
    assert world.snapshot().version == before, "it is lost once"


def wait(world: World, seconds: float) -> None:
    """While everybody is heard."""
    for _ in range(10):
        world.beat("a", "b", "c")
        world.wait(seconds / 10)
        world.beat("a", "b", "c")
        world.expire()


def test_that_another_task_is_late_is_not_laid_to_the_move(world: World, submit: Submit) -> None:
    job = submit("stop")
    says(world, place(world, job, "w-1"), "exited", 1)
    wait(world, 0.7 * world.timeouts.starting_s)
    move(world, job, "starting")
    wait(world, 0.4 * world.timeouts.starting_s)
    assert world.job(job).state is JobState.RESCHEDULING
    assert (world.job(job).reason or "").startswith("w-1 on b has not started again")
    assert (state(world, job), held_beside(world, job)) == ("failed", (0, 0))
    assert view(world, job).reason == "the job is rescheduling"


@pytest.mark.parametrize("how", ["lapsed", "reclaimed"])
def test_a_coming_copy_whose_node_ended_it_leaves_the_job_where_it_is(world: World, submit: Submit, how: str) -> None:
    """Also where it said nothing of that, and ended as if its work were done."""
    job = submit("stop")
    move(world, job, "starting")
    new = place(world, job, TASK)
    told = {"allocation": new.id, "incarnation": new.incarnation, "state": "exited", "exit_code": 0, how: True}
    world.report(Status(node="c", generation=0, workers=[WorkerStatus.model_validate(told)]))
    assert (world.job(job).state, state(world, job)) == (JobState.RUNNING, "returning")
    says(world, place(world, job, TASK), "running")
    assert (state(world, job), place(world, job, TASK).node) == ("kept", "a")


def test_time_in_which_a_job_is_paused_does_not_count_against_its_move(world: World, submit: Submit) -> None:
    job = submit("stop")
    wait(world, 0.5 * world.timeouts.preparing_s)
    move(world, job, "reserved")
    world.write(lambda tx: commands.pause_job(tx, job))
    wait(world, 2 * world.timeouts.preparing_s)
    world.write(lambda tx: commands.resume_job(tx, job))
    wait(world, 0.5 * world.timeouts.preparing_s)
    laid(world, job)
    assert state(world, job) == "stopping"


def cut(world: World, *link: str) -> None:
    mesh = full_mesh(["a", "b", "c"])
    world.put_topology(
        mesh.model_copy(update={"links": [each for each in mesh.links if {each.src, each.dst} != {*link}]})
    )


@pytest.mark.parametrize("when", ["reserved", "stopping", "starting"])
@pytest.mark.parametrize("how", ["link", "node"])
def test_where_only_what_is_held_beside_is_carried_no_more_the_job_stays(
    world: World, submit: Submit, when: str, how: str
) -> None:
    """Towards the destination, or of the way back: over a link that is gone, or a node that is forgotten."""
    job = submit("stop")
    old = place(world, job, TASK)
    if how == "link":
        move(world, job, when)
        cut(world, *("ab" if when == "starting" else "bc"))
    else:
        world.add_nodes("d")
        world.put_topology(full_mesh(["a", "b", "c", "d"]))
        if when == "starting":
            flows = world.job(job).reserved
            longer = [(flow, [flow.path[0], "d", flow.path[-1]]) for flow in flows]
            given = [FlowPlan(src=flow.src, dst=flow.dst, rate=flow.rate, path=path) for flow, path in longer]
            assert world.revise(job, *given) is None
            move(world, job, when)
        else:
            paths = {"w-0": ["c", "d", "b"], "w-1": ["b", "d", "c"]}
            flows = world.job(job).flows
            given = [FlowPlan(src=flow.src, dst=flow.dst, rate=10**7, path=paths[flow.src]) for flow in flows]
            world.write(lambda tx: commit_move(tx, job, MoveRequest(task=TASK, to="c"), given))
            if when == "stopping":
                laid(world, job)
        world.write(lambda tx: operations.cordon(tx, "d"))
        world.forget("d")
    assert world.job(job).state is JobState.RUNNING
    assert held_beside(world, job) == (0, 0)
    if when == "stopping":
        gone(world, old)
    then = {"reserved": "kept", "stopping": "returning", "starting": "starting"}[when]
    assert (state(world, job), place(world, job, TASK).node) == (then, "c" if when == "starting" else "a")
    says(world, place(world, job, TASK), "running")
    assert state(world, job) == ("done" if when == "starting" else "kept")


def test_a_destination_that_is_lost_and_then_forgotten_leaves_the_job_where_it_is(world: World, submit: Submit) -> None:
    job = submit("stop")
    old = place(world, job, TASK)
    move(world, job, "stopping")
    lose(world, "c")
    assert held_beside(world, job) == (0, 0)
    assert world.forget("c") == []
    gone(world, old)
    assert (world.job(job).state, state(world, job)) == (JobState.RUNNING, "returning")
    says(world, place(world, job, TASK), "running")
    assert state(world, job) == "kept"


def test_what_jobs_have_comes_before_what_is_held_for_moves(world: World, submit: Submit) -> None:
    """Of a link that has become too small for both."""
    job = submit("stop")
    other = world.submit(ring("other", 2, priority=1))
    world.run(other, ["b", "c"])
    move(world, job, "reserved")
    world.put_topology(full_mesh(["a", "b", "c"], "15Mbit"))
    assert [world.job(each).state for each in (job, other)] == [JobState.RUNNING] * 2
    assert (state(world, job), held_beside(world, job)) == ("kept", (0, 0))
    assert view(world, job).reason in {"link b › c has too little left", "link c › b has too little left"}


@pytest.mark.parametrize("how", ["drained", "forgotten"])
def test_where_only_a_leaving_copy_is_left_on_a_node_the_task_goes_on(world: World, submit: Submit, how: str) -> None:
    job = submit("stop")
    old = place(world, job, TASK)
    move(world, job, "stopping")
    if how == "drained":
        for _ in range(2):
            world.write(lambda tx: operations.drain(tx, "a"))
        assert (state(world, job), held_beside(world, job)) == ("stopping", (1, 2)), "what it needs there"
        gone(world, old)
    else:
        lose(world, "a")
        world.forget("a")
    assert (world.job(job).state, held_beside(world, job)) == (JobState.RUNNING, (0, 0))
    new = place(world, job, TASK)
    assert (state(world, job), new.node) == ("starting", "c")
    assert sorted(flow.path for flow in world.job(job).reserved) == [["b", "c"], ["c", "b"]]
    says(world, new, "running")
    assert state(world, job) == "done"


@pytest.mark.parametrize("first", ["a", "c"])
def test_where_both_nodes_are_left_while_it_ends_the_job_is_placed_anew(
    world: World, submit: Submit, first: str
) -> None:
    job = submit("stop")
    old = place(world, job, TASK)
    move(world, job, "stopping")
    for node in (first, "c" if first == "a" else "a"):
        world.write(lambda tx, node=node: operations.drain(tx, node))
    assert (world.job(job).state, held_beside(world, job)) == (JobState.RUNNING, (0, 0))
    gone(world, old)
    assert (world.job(job).state, state(world, job)) == (JobState.RESCHEDULING, "failed")
    world.confirm(job)
    assert world.job(job).state is JobState.QUEUED


def test_a_task_with_no_way_back_is_not_sent_to_a_node_that_is_away_either(world: World, submit: Submit) -> None:
    job = submit("keep")
    old = place(world, job, TASK)
    move(world, job, "stopping")
    world.write(lambda tx: operations.drain(tx, "a"))
    lose(world, "c", steps=5)
    gone(world, old)
    assert (world.job(job).state, state(world, job)) == (JobState.RESCHEDULING, "failed")
