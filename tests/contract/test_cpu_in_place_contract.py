"""CPU of running workers that changes in place, on both databases: more is held at once, less once it is given up."""

from collections.abc import Iterator

import pytest
from manager_world import World, ring
from meshed_world import meshed_world
from sqlalchemy.engine import URL
from world_audit import findings

from ces_common.db.tables import EventRow
from ces_common.messages.events import parse_event
from ces_common.messages.plans import CpuCommitted, CpuRejected, CpuReleased
from ces_common.messages.records import AllocationRecord
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import JobState
from ces_manager.nodes import operations, owners
from ces_manager.plans.residual import residual_of

NODES = ["a", "b", "c"]


@pytest.fixture
def world(url: URL) -> Iterator[World]:
    """Of 1000 millicores each; what happened is audited twice."""
    with meshed_world(url, *NODES, cpu=1000) as made:
        yield made
        assert findings(made) == []


def elastic(world: World, most: int = 3, **more: object) -> str:
    """A job of two workers or more that begin with 500 millicores, of 200 to 900."""
    sizes = {"min": 2, "max": most}
    return world.submit(
        ring("m", elastic={"group": "w", "workers": sizes, "cpu": {"min": "200m", "max": "900m"}}, **more)
    )


@pytest.fixture
def job(world: World) -> str:
    """On a and b."""
    made = elastic(world)
    world.run(made, ["a", "b"])
    return made


def free(world: World) -> list[int]:
    """Millicores left of each node."""
    with world.uow.read() as tx:
        left = residual_of(tx, NODES, ()).nodes
        return [left[name].cpu for name in NODES]


def last_event(world: World) -> object:
    with world.uow.read() as tx:
        return parse_event(tx.session.query(EventRow).order_by(EventRow.sequence.desc()).first().body.encode()).data


def says(world: World, allocation: AllocationRecord, cpu: int | None, **more: int) -> bool:
    """Its agent says what the worker has; whether that was news."""
    worker = WorkerStatus(
        allocation=allocation.id, incarnation=more.get("incarnation", allocation.incarnation), state="running", cpu=cpu
    )
    generation = more.get("generation", world.snapshot().version)
    return world.report(Status(node=allocation.node, generation=generation, workers=[worker]))


def test_what_a_worker_is_to_have_more_is_held_at_once(world: World, job: str) -> None:
    before = world.job(job)
    assert world.change_cpu(job, 800) is None
    after = world.job(job)
    assert free(world) == [200, 200, 1000]
    assert [(each.cpu, each.cpu_desired, each.cpu_since) for each in after.allocations] == [
        (800, 800, after.version)
    ] * 2
    assert after.version > before.version, "readers that follow by changes see it"
    assert (after.state, after.attempt, after.tasks) == (before.state, before.attempt, before.tasks)
    assert [each.incarnation for each in after.allocations] == [1, 1]
    told = last_event(world)
    assert isinstance(told, CpuCommitted)
    assert (told.job, told.attempt, told.cpu) == (job, 1, 800)


def test_more_than_there_is_nobody_gets(world: World, job: str) -> None:
    world.run(world.submit(ring("other", tasks=1)), ["b"])
    before = world.job(job)
    assert world.change_cpu(job, 600) == "node b has 0 cores left, the change asks for 0.1 cores more"
    assert world.job(job) == before
    told = last_event(world)
    assert isinstance(told, CpuRejected)
    assert not told.stale


def test_workers_on_one_node_count_together(world: World) -> None:
    job = elastic(world)
    world.run(job, ["a"])
    assert world.change_cpu(job, 501) == "node a has 0 cores left, the change asks for 0.002 cores more"


def test_what_a_worker_gives_up_is_held_until_its_agent_says_so(world: World, job: str) -> None:
    first, second = world.job(job).allocations
    assert world.change_cpu(job, 300) is None
    assert free(world) == [500, 500, 1000]
    since = world.job(job).allocations[0].cpu_since
    assert since is not None
    assert not says(world, first, None)
    assert not says(world, first, 301)
    assert not says(world, first, 300, generation=since - 1), "said before it was told"
    assert not says(world, first, 300, incarnation=2)
    assert not says(world, first.model_copy(update={"node": "b"}), 0), "a node speaks of its own workers only"
    assert free(world) == [500, 500, 1000]
    before = world.job(job).version
    assert says(world, first, 300)
    assert free(world) == [700, 500, 1000]
    told = last_event(world)
    assert isinstance(told, CpuReleased)
    assert (told.allocation, told.task, told.node, told.cpu) == (first.id, "w-0", "a", 300)
    assert world.job(job).version > before
    assert not says(world, first, 0), "it gives up no more than was asked for"
    assert says(world, second, 250)
    assert free(world) == [700, 700, 1000]


def test_a_change_back_before_the_agent_has_spoken_takes_nothing_new(world: World, job: str) -> None:
    first = world.job(job).allocations[0]
    assert world.change_cpu(job, 300) is None
    assert world.change_cpu(job, 400) is None
    assert free(world) == [500, 500, 1000]
    assert says(world, first, 300)
    assert free(world) == [600, 500, 1000]
    assert world.change_cpu(job, 500) is None
    assert free(world) == [500, 500, 1000]
    assert not says(world, first, 400)


@pytest.mark.parametrize("cpu", [200, 900])
def test_a_plan_says_with_how_much_workers_begin(world: World, cpu: int) -> None:
    job = elastic(world)
    plan = world.propose(job, ["a", "b"]).model_copy(update={"cpu": cpu})
    assert world.commit(plan) is None
    record = world.job(job)
    assert free(world) == [1000 - cpu, 1000 - cpu, 1000]
    assert [(each.cpu, each.cpu_desired, each.cpu_pending) for each in record.allocations] == [(cpu, cpu, False)] * 2
    assert [task.cpu for task in record.tasks] == [500, 500], "what it asks for stays"
    world.network(job)
    world.tell(job, "running")
    assert world.change_cpu(job, 500) is None
    assert free(world) == [min(500, 1000 - cpu)] * 2 + [1000]


@pytest.mark.parametrize(
    ("cpu", "why"),
    [
        (199, "allows 200m to 900m of CPU for each worker, not 199m"),
        (901, "allows 200m to 900m of CPU for each worker, not 901m"),
        (900, "node b has 0.5 cores left, the plan asks for 0.9 cores"),
    ],
)
def test_a_plan_with_an_amount_that_cannot_be_is_rejected(world: World, cpu: int, why: str) -> None:
    world.run(world.submit(ring("other", tasks=1)), ["b"])
    job = elastic(world)
    assert why in str(world.commit(world.propose(job, ["a", "b"]).model_copy(update={"cpu": cpu})))
    assert world.job(job).state is JobState.QUEUED
    assert free(world) == [1000, 500, 1000]


def test_no_plan_chooses_for_a_job_that_does_not_let_it(world: World) -> None:
    job = world.submit(ring("other", tasks=1))
    refused = world.commit(world.propose(job, ["a"]).model_copy(update={"cpu": 400}))
    assert refused == "the CPU of job other is not CES's to choose: its file has no elastic.cpu"


def test_workers_that_never_change_are_not_concerned_by_what_agents_say(world: World) -> None:
    other = world.submit(ring("other", tasks=1))
    world.run(other, ["c"])
    (held,) = world.job(other).allocations
    assert not says(world, held, 0)
    assert world.change_cpu(other, 300) == ("the CPU of job other is not CES's to choose: its file has no elastic.cpu")
    assert free(world) == [1000, 1000, 500]


@pytest.mark.parametrize(
    ("cpu", "more", "why", "stale"),
    [
        (199, {}, "allows 200m to 900m of CPU for each worker, not 199m", False),
        (901, {}, "allows 200m to 900m of CPU for each worker, not 901m", False),
        (500, {}, "no running worker of job m would have another amount", False),
        (600, {"attempt": 2}, "is at attempt 1, the proposal is for 2", True),
        (600, {"version": 1}, "has changed since version 1", True),
    ],
)
def test_what_is_refused(world: World, job: str, cpu: int, more: dict[str, int], why: str, stale: bool) -> None:
    before = world.job(job)
    assert why in str(world.change_cpu(job, cpu, **more))
    told = last_event(world)
    assert isinstance(told, CpuRejected)
    assert told.stale is stale
    assert world.job(job) == before


def test_only_a_running_job_changes(world: World, job: str) -> None:
    world.write(lambda tx: operations.cordon(tx, "a"))
    assert world.change_cpu(job, 600) == "node a is cordoned"
    assert world.change_cpu(job, 400) is None
    assert world.resize(job, 3, ["a", "b", "b"]) is not None, "its first node is cordoned"
    world.write(lambda tx: operations.uncordon(tx, "a"))
    assert world.resize(job, 3, ["a", "b", "c"]) is None
    assert "is resizing; only of a running job does CPU change" in str(world.change_cpu(job, 600))


def test_a_node_that_its_owner_has_back_gives_no_more(world: World, job: str) -> None:
    second = world.job(job).allocations[1]
    world.write(lambda tx: owners.take_news(tx, {"a": True}))
    assert world.job(job).state is not JobState.RUNNING
    assert "only of a running job" in str(world.change_cpu(job, 600))
    assert not says(world, second, 100, generation=0)


def test_a_job_that_is_cancelled_in_between_gives_everything_back(world: World, job: str) -> None:
    assert world.change_cpu(job, 900) is None
    assert world.change_cpu(job, 300) is None
    world.cancel(job)
    assert free(world) == [100, 100, 1000]
    world.confirm(job)
    assert free(world) == [1000, 1000, 1000]


def test_a_suspended_job_goes_on_with_what_its_file_says(world: World) -> None:
    job, other = elastic(world, priority=10, preemption="suspend"), world.submit(ring("urgent", tasks=1, priority=90))
    world.run(job, ["a", "b"])
    assert world.change_cpu(job, 900) is None
    assert world.preempt(other, job) is None
    assert free(world) == [1000, 1000, 1000]
    assert [each.cpu_desired for each in world.job(job).allocations] == [None, None]
    assert world.commit(world.go_on(job)) is None
    assert world.job(job).state is JobState.RUNNING
    assert free(world) == [500, 500, 1000]
    assert world.change_cpu(job, 900) is None


def test_a_gang_that_starts_again_in_place_keeps_its_amount(world: World, job: str) -> None:
    assert world.change_cpu(job, 300) is None
    world.tell(job, "exited", "w-1", exit_code=1)
    again = world.job(job)
    assert again.state is JobState.STARTING
    assert [each.cpu_desired for each in again.allocations] == [300, 300]
    assert free(world) == [500, 500, 1000]
    world.tell(job, "running")
    assert [each.cpu_pending for each in world.job(job).allocations] == [True, True]
    assert says(world, world.job(job).allocations[0], 300)
    assert free(world) == [700, 500, 1000]


@pytest.mark.parametrize("cpu", [900, 300])
def test_a_new_size_begins_with_what_the_file_says(world: World, job: str, cpu: int) -> None:
    """Meanwhile the larger of both is held."""
    assert world.change_cpu(job, cpu) is None
    if cpu < 500:
        assert all(says(world, each, cpu) for each in world.job(job).allocations)
    assert world.resize(job, 3, ["a", "b", "b"]) is None
    most = 1000 - max(cpu, 500)
    assert free(world) == [most, 0, 1000]
    world.confirm(job)
    assert free(world) == [500, 0, 1000]
    assert world.job(job).attempt == 2
    assert [each.cpu_desired for each in world.job(job).allocations] == [None] * 3


def test_a_job_that_is_placed_again_begins_with_what_its_file_says(world: World, job: str) -> None:
    assert world.change_cpu(job, 900) is None
    world.write(lambda tx: operations.drain(tx, "a"))
    world.confirm(job)
    assert world.job(job).state is JobState.QUEUED
    world.run(job, ["b", "c"])
    assert free(world) == [1000, 500, 500]
