"""Malleable jobs that go to another size: what is held meanwhile, when the new size begins, and what ends a resize."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from history_actors import malleable
from manager_world import World, ring, sqlite_url
from meshed_world import meshed_world
from world_audit import findings

from ces_common.messages.plans import FlowPlan
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import AllocationState, JobState
from ces_manager.jobs.next_size import beyond
from ces_manager.nodes import operations
from ces_manager.plans.residual import residual_of

J, A = JobState, AllocationState
NODES = ["a", "b", "c"]
HOPS = {(src, dst): 20_000_000 for src in NODES for dst in NODES if src != dst}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Three nodes with room for two workers each; what happened is audited twice."""
    with meshed_world(sqlite_url(tmp_path), *NODES, bandwidth="20Mbit", cpu=1000) as made:
        yield made
        assert findings(made, HOPS) == []


@pytest.fixture
def job(world: World) -> str:
    """Of two workers, on a and b."""
    made = world.submit(malleable(low=2))
    world.run(made, ["a", "b"])
    return made


def free(world: World) -> dict[str, int]:
    """Millicores left of each node."""
    with world.uow.read() as tx:
        return {name: node.cpu for name, node in residual_of(tx, NODES, ()).nodes.items()}


def gone(world: World, job: str, *nodes: str) -> None:
    """Agents confirm that nothing of the job is left."""
    for node in nodes:
        world.report(Status(node=node, generation=world.snapshot().version, workers=[]))


def test_a_job_starts_at_its_smallest_size_unless_the_plan_says_otherwise(world: World) -> None:
    job = world.submit(malleable(low=2))
    assert (world.job(job).size, len(world.job(job).tasks), len(world.job(job).flows)) == (2, 2, 2)
    plan = world.propose(job, ["a"])
    assert world.commit(plan.model_copy(update={"size": 9})) == "job malleable has no size 9"
    assert world.commit(plan.model_copy(update={"size": 3})) == "the plan does not place exactly the job's tasks"
    assert world.commit(plan) is None
    assert world.job(job).size == 2


def test_growth_is_held_first_and_begins_when_nothing_of_the_former_size_is_left(world: World, job: str) -> None:
    former = [allocation.id for allocation in world.job(job).allocations]
    assert free(world) == {"a": 500, "b": 500, "c": 1000}
    assert world.resize(job, 4, ["a", "b", "c", "c"]) is None
    record = world.job(job)
    assert (record.state, record.attempt, record.size) == (J.RESIZING, 1, 2)
    assert record.reason == "goes from 2 to 4 w"
    assert {allocation.state for allocation in record.allocations} == {A.STOPPING}
    assert record.resizing is not None
    assert (record.resizing.size, len(record.resizing.reserved)) == (4, 4)
    assert free(world) == {"a": 500, "b": 500, "c": 0}
    gone(world, job, "a")
    assert world.job(job).attempt == 1
    assert free(world) == {"a": 500, "b": 500, "c": 0}, "what one worker gave back was given away in between"
    gone(world, job, "b")
    record = world.job(job)
    assert (record.state, record.attempt, record.size, record.resizing) == (J.RESIZING, 2, 4, None)
    assert [allocation.node for allocation in record.allocations] == ["a", "b", "c", "c"]
    assert not {allocation.id for allocation in record.allocations} & set(former)
    world.network(job)
    assert world.job(job).state is J.STARTING
    world.tell(job, "running")
    assert (world.job(job).state, world.job(job).restarts) == (J.RUNNING, 0)


def test_a_network_that_is_ready_starts_nothing_while_something_of_the_former_size_is_left(
    world: World, job: str
) -> None:
    world.resize(job, 4, ["a", "b", "c", "c"])
    world.network(job)
    assert world.job(job).state is J.RESIZING


def test_a_shrink_gives_back_what_it_no_longer_needs_and_no_sooner(world: World, job: str) -> None:
    world.resize(job, 4, ["a", "b", "c", "c"])
    gone(world, job, "a", "b")
    world.network(job)
    world.tell(job, "running")
    assert world.resize(job, 2, ["a", "b"]) is None
    assert free(world) == {"a": 500, "b": 500, "c": 0}
    gone(world, job, "c", "a", "b")
    assert free(world) == {"a": 500, "b": 500, "c": 1000}
    assert world.job(job).size == 2


def test_what_does_not_fit_beside_others_is_refused(world: World, job: str) -> None:
    other = world.submit(ring("other", tasks=1))
    world.run(other, ["c"])
    assert world.resize(job, 4, ["a", "b", "c", "c"]) == "node c has 0.5 cores left, the plan asks for 1 core"
    assert (world.job(job).state, world.job(job).resizing) == (J.RUNNING, None)


def test_links_count_once_for_both_sizes(world: World, job: str) -> None:
    """Ring flows of 10 Mbit/s on links of which 19 may be reserved: a second pair would not fit beside the first."""
    assert world.resize(job, 3, ["a", "b", "a"]) is None
    gone(world, job, "a", "b")
    world.network(job)
    assert [flow.rate for flow in world.job(job).reserved] == [10_000_000] * 3


@pytest.mark.parametrize(
    ("size", "places", "more", "why"),
    [
        (9, ["a"], {}, "job malleable has no size 9"),
        (2, ["a", "c"], {}, "job malleable has this size already"),
        (3, ["c", "a", "b"], {}, "w-0 of job malleable must stay on node a, where the checkpoints lie"),
        (3, ["a", "b", "c"], {"attempt": 7}, "job malleable is at attempt 1, the proposal is for 7"),
        (3, ["a", "b", "c"], {"version": 1}, "job malleable has changed since version 1"),
        (4, ["a", "a", "a", "b"], {}, "node a has 1 core left, the plan asks for 1.5 cores"),
    ],
)
def test_refusals_say_why(world: World, job: str, size: int, places: list[str], more: dict[str, int], why: str) -> None:
    assert world.resize(job, size, places, **more) == why
    assert world.job(job).state is J.RUNNING


def test_a_rigid_job_is_not_resized(world: World) -> None:
    job = world.submit(ring())
    world.run(job, NODES)
    plan = world.propose(job, NODES)
    assert world.job(job).spec is None
    with pytest.raises(AssertionError):
        world.resize(job, 2, NODES)
    assert world.commit(plan.model_copy(update={"size": 2})) is not None


def test_exits_meanwhile_are_neither_success_nor_failure(world: World, job: str) -> None:
    before = world.job(job).allocations
    world.resize(job, 3, ["a", "b", "c"])
    for allocation, code in zip(before, (0, 1), strict=True):
        worker = WorkerStatus(allocation=allocation.id, incarnation=1, state="exited", exit_code=code)
        world.report(Status(node=allocation.node, generation=0, workers=[worker]))
    assert (world.job(job).state, world.job(job).restarts) == (J.RESIZING, 0)


@pytest.mark.parametrize("phase", ["held", "taken-over"])
@pytest.mark.parametrize("how", ["cancel", "drain-former", "drain-next"])
def test_whatever_ends_the_place_wins_over_a_resize(world: World, job: str, phase: str, how: str) -> None:
    world.resize(job, 3, ["a", "b", "c"])
    if phase == "taken-over":
        gone(world, job, "a", "b")
    if how == "cancel":
        world.cancel(job)
    else:
        world.write(lambda tx: operations.drain(tx, "a" if how == "drain-former" else "c"))
    gone(world, job, *NODES)
    record = world.job(job)
    assert record.state is (J.CANCELLED if how == "cancel" else J.QUEUED)
    assert (record.resizing, free(world)) == (None, dict.fromkeys(NODES, 1000))
    if how != "cancel":
        assert record.size == 2, "it waits at the size that it had, not at the smallest"
        world.run(job, ["b"] if how == "drain-former" else ["a", "b"])


def test_a_node_lost_meanwhile_sends_the_job_elsewhere(world: World, job: str) -> None:
    world.resize(job, 3, ["a", "b", "c"])
    for name in world.job(job).allocations:
        assert name.state is A.STOPPING
    world.beat("b", "c")
    world.look()
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 400)
    world.beat("b", "c")
    world.expire()
    gone(world, job, "b")
    assert world.job(job).state is J.QUEUED


@pytest.mark.parametrize("phase", ["held", "taken-over"])
@pytest.mark.parametrize("places", [["a"], ["a", "b"]], ids=["one-node", "two-nodes"])
def test_the_last_node_lost_meanwhile_leaves_nothing_behind(world: World, phase: str, places: list[str]) -> None:
    job = world.submit(malleable(low=2))
    world.run(job, places)
    assert world.resize(job, 4, ["a", "b", "b", "c"]) is None
    if phase == "taken-over":
        gone(world, job, "a", "b")
    elif len(places) == 2:
        gone(world, job, "b")
    world.look()
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 400)
    world.beat("b", "c")
    world.expire()
    gone(world, job, "b", "c")
    record = world.job(job)
    assert (record.state, record.resizing, free(world)) == (J.QUEUED, None, dict.fromkeys(NODES, 1000))
    assert [each for each in record.allocations if not each.over] == []
    world.run(job, ["b", "c"])


def test_flows_stay_as_they_are_while_both_sizes_are_held(world: World, job: str) -> None:
    """What a flow of the former size gave up could be another's when the new one needs it."""
    world.resize(job, 3, ["a", "b", "c"])
    held = world.job(job).reserved[0]
    other = FlowPlan(src=held.src, dst=held.dst, rate=12_000_000, path=held.path)
    assert world.revise(job, other) == "job malleable goes to another size"
    gone(world, job, "a", "b")
    held = world.job(job).reserved[0]
    other = FlowPlan(src=held.src, dst=held.dst, rate=12_000_000, path=held.path)
    assert world.revise(job, other) is None


def test_a_resize_is_not_late_while_whoever_ends_workers_is_away(world: World, job: str) -> None:
    world.resize(job, 3, ["a", "b", "c"])
    world.controllers.remove("compute-ctl")
    for _ in range(3):
        world.wait(world.timeouts.resizing_s)
        world.beat(*NODES)
        world.expire()
    assert world.job(job).state is J.RESIZING


def test_a_resize_that_takes_too_long_gives_its_place_up(world: World, job: str) -> None:
    world.resize(job, 3, ["a", "b", "c"])
    for _ in range(2):
        world.wait(world.timeouts.resizing_s)
        world.beat(*NODES)
        world.expire()
    world.wait(1)
    world.beat(*NODES)
    world.expire()
    assert (world.job(job).state, world.job(job).reason) == (J.RESCHEDULING, "resizing for more than 120 s")


def test_what_goes_beyond_is_counted_by_key_and_in_order() -> None:
    assert beyond([("a", 3), ("b", 1), ("a", 3)], {"a": 4, "c": 9}) == [0, 1, 2]
