"""What workers' ends do to a job, and what agents confirm."""

from __future__ import annotations

import pytest
from manager_world import World, ring

from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import AllocationState, JobState
from ces_manager.jobs.job_views import job_view
from ces_manager.jobs.worker_reports import take_reports
from ces_manager.measurements import Measurements

NODES = ["a", "b", "c"]


J, A = JobState, AllocationState


def states(world: World, job: str) -> list[AllocationState]:
    return [allocation.state for allocation in world.job(job).allocations]


def test_a_failed_worker_restarts_its_gang_and_then_fails_the_job(world: World) -> None:
    job = world.submit(ring(restart={"policy": "on-failure", "max": 1}))
    world.run(job, NODES)
    world.tell(job, "exited", "w-1", exit_code=3)
    record = world.job(job)
    assert (record.state, record.restarts) == (J.STARTING, 1)
    assert {(a.incarnation, a.state) for a in record.allocations} == {(2, A.PENDING)}
    old = record.allocations[0]
    stale = WorkerStatus(allocation=old.id, incarnation=1, state="exited", exit_code=3)
    assert not world.report(Status(node=old.node, generation=0, workers=[stale]))
    world.tell(job, "running")
    world.tell(job, "exited", "w-2", exit_code=4, reason="out of memory")
    record = world.job(job)
    assert record.state is J.FAILED
    assert record.reason == "w-2 on c exited with code 4: out of memory (after 1 restart)"
    assert states(world, job) == [A.STOPPING, A.STOPPING, A.FAILED]
    world.confirm(job)
    assert states(world, job) == [A.STOPPED, A.STOPPED, A.FAILED]
    assert world.snapshot().jobs == []


def test_scope_task_restarts_only_the_one(world: World) -> None:
    job = world.submit(ring(restart={"scope": "task"}))
    world.run(job, NODES)
    world.tell(job, "exited", "w-1", exit_code=1)
    record = world.job(job)
    assert record.state is J.RUNNING
    assert [a.incarnation for a in record.allocations] == [1, 2, 1]
    assert states(world, job) == [A.RUNNING, A.PENDING, A.RUNNING]


def test_why_a_worker_starts_again_is_told_until_it_runs_also_while_its_start_waits(world: World) -> None:
    job = world.submit(ring(restart={"scope": "task"}))
    world.run(job, NODES)
    world.tell(job, "exited", "w-1", exit_code=137, reason="out of memory")

    def told() -> str | None:
        with world.uow.read() as tx:
            return job_view(tx, job, Measurements()).placement[1].reason

    again = world.job(job).allocations[1]
    for waits, said in (
        (None, "out of memory"),
        ("waits for its secrets: no manager answers", "out of memory; waits for its secrets: no manager answers"),
        (None, "out of memory"),
    ):
        starting = WorkerStatus(allocation=again.id, incarnation=2, state="starting", reason=waits)
        world.report(Status(node=again.node, generation=0, workers=[starting]))
        assert told() == said
        assert world.job(job).allocations[1].reason == "out of memory"
    world.tell(job, "running", "w-1")
    assert told() is None


@pytest.mark.parametrize("why", ["reclaimed", "lapsed"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_gang_that_fails_with_a_peer_whose_node_leaves_uses_up_no_restart(world: World, why: str, order: int) -> None:
    """Where both are told at once."""
    job = world.submit(ring(restart={"max": 0}))
    world.run(job, NODES)
    first, second, _ = world.job(job).allocations
    failed = WorkerStatus(allocation=first.id, incarnation=1, state="exited", exit_code=1)
    left = WorkerStatus.model_validate(
        {"allocation": second.id, "incarnation": 1, "state": "exited", "exit_code": 143, why: True}
    )
    told = [(first.node, failed), (second.node, left)][::order]
    statuses = [Status(node=node, generation=0, workers=[worker]) for node, worker in told]
    world.write(lambda tx: take_reports(tx, statuses))
    assert (world.job(job).state, world.job(job).restarts) == (J.RESCHEDULING, 0)


def test_the_signal_that_ended_a_worker_has_its_name(world: World) -> None:
    job = world.submit(ring(restart={"policy": "never"}))
    world.run(job, NODES)
    world.tell(job, "exited", "w-1", exit_code=137)
    assert world.job(job).reason == "w-1 on b exited with code 137 (SIGKILL)"


def test_a_gang_that_fails_because_a_peer_has_fallen_silent_uses_up_no_restart(world: World) -> None:
    """Its programs notice long before the node can be given up."""
    job = world.submit(ring(restart={"max": 0}))
    world.run(job, NODES)
    world.wait(world.timeouts.unreachable_after_s + 1)
    world.beat("a", "b")
    world.expire()
    world.tell(job, "exited", "w-0", exit_code=1)
    record = world.job(job)
    assert (record.state, record.restarts) == (J.RESCHEDULING, 0)
    assert record.reason == "w-0 on a exited with code 1, while node c of its gang is unreachable"
    assert states(world, job) == [A.FAILED, A.STOPPING, A.STOPPING]
    for allocation in record.allocations[:2]:
        world.report(Status(node=allocation.node, generation=world.snapshot().version, workers=[]))
    assert world.job(job).state is J.RESCHEDULING, "what runs there may run on"
    world.wait(world.timeouts.lease_s + 300 + world.timeouts.margin_s)
    world.beat("a", "b")
    world.expire()
    record = world.job(job)
    assert (record.state, record.attempt, record.restarts) == (J.QUEUED, 2, 0)


@pytest.mark.parametrize(
    ("restart", "state", "restarts"),
    [({"policy": "never"}, J.FAILED, 0), ({"scope": "task"}, J.RUNNING, 1)],
    ids=["never", "task"],
)
def test_a_peer_that_is_silent_excuses_no_worker_that_stands_alone_or_never_starts_again(
    world: World, restart: dict[str, str], state: JobState, restarts: int
) -> None:
    job = world.submit(ring(restart=restart))
    world.run(job, NODES)
    world.wait(world.timeouts.unreachable_after_s + 1)
    world.beat("a", "b")
    world.expire()
    world.tell(job, "exited", "w-0", exit_code=1)
    assert (world.job(job).state, world.job(job).restarts) == (state, restarts)


def test_a_gang_with_a_finished_member_gets_a_new_place(world: World) -> None:
    job = world.submit(ring())
    world.run(job, NODES)
    world.tell(job, "exited", "w-0", exit_code=0)
    world.tell(job, "exited", "w-1", exit_code=1)
    record = world.job(job)
    assert (record.state, record.restarts) == (J.RESCHEDULING, 1)
    world.confirm(job)
    record = world.job(job)
    assert (record.state, record.attempt, record.allocations) == (J.QUEUED, 2, [])


def test_a_worker_that_cannot_be_started_fails_the_job_at_once(world: World) -> None:
    job = world.submit(ring())
    assert world.commit(world.propose(job, NODES)) is None
    world.network(job)
    world.tell(job, "refused", "w-0", reason="no image x")
    assert world.job(job).state is J.FAILED
    assert world.job(job).reason == "w-0 could not be started on a: no image x"


def test_capacity_is_held_until_the_agent_confirms_at_a_new_enough_generation(world: World) -> None:
    job = world.submit(ring(tasks=1))
    world.run(job, ["a"])
    world.cancel(job)
    allocation = world.job(job).allocations[0]
    assert allocation.stopping_since is not None
    running = WorkerStatus(allocation=allocation.id, incarnation=1, state="running")
    gone = WorkerStatus(allocation=allocation.id, incarnation=1, state="exited", exit_code=143)
    since = allocation.stopping_since
    assert not world.report(Status(node="a", generation=since - 1, workers=[]))
    assert not world.report(Status(node="a", generation=since - 1, workers=[gone]))
    assert not world.report(Status(node="a", generation=since, workers=[running]))
    assert not world.report(Status(node="b", generation=since, workers=[]))
    assert world.report(Status(node="a", generation=since, workers=[gone]))
    assert world.job(job).released


def test_what_no_agent_was_told_of_needs_no_confirmation(world: World) -> None:
    job = world.submit(ring())
    assert world.commit(world.propose(job, NODES)) is None
    world.cancel(job)
    assert states(world, job) == [A.STOPPED] * 3
    assert world.snapshot().jobs == []
    told = world.submit(ring())
    assert world.commit(world.propose(told, NODES)) is None
    world.network(told)
    world.cancel(told)
    assert states(world, told) == [A.STOPPING] * 3
