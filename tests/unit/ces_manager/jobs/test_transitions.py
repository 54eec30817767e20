"""A job on its whole way, with its events and times."""

from __future__ import annotations

from manager_world import World, ring

from ces_common.states import AllocationState, JobState
from ces_manager.jobs import job_views
from ces_manager.measurements import Measurements
from ces_manager.nodes import node_views, operations

NODES = ["a", "b", "c"]


J, A = JobState, AllocationState


def test_a_job_goes_all_the_way(world: World) -> None:
    job = world.submit(ring())
    assert world.commit(world.propose(job, NODES)) is None
    record = world.job(job)
    assert record.state is J.PLANNED
    assert [allocation.address for allocation in record.allocations] == ["10.64.0.2", "10.64.1.2", "10.64.2.2"]
    assert [flow.number for flow in record.reserved] == [1, 2, 3]
    world.network(job)
    world.tell(job, "running")
    assert world.job(job).state is J.RUNNING
    world.tell(job, "exited", exit_code=0)
    over = world.job(job)
    assert over.state is J.SUCCEEDED
    assert over.released
    assert world.snapshot().jobs == []
    kinds = [kind for _, kind in world.events() if kind.startswith(("job", "plan"))]
    assert kinds == [
        "job.queued",
        "plan.committed",
        "job.planned",
        "job.preparing",
        "job.starting",
        "job.running",
        "job.succeeded",
    ]
    with world.uow.read() as tx:
        view = job_views.job_view(tx, job, Measurements())
        assert view.flows[0].enforced
        assert view.flows[0].rate == 10_000_000
        assert job_views.plan_view(tx, job).assignments == {"w-0": "a", "w-1": "b", "w-2": "c"}
        assert all(link.reserved == 0 for link in node_views.topology_view(tx, Measurements()).links)


def test_since_when_a_job_holds_what_it_has(world: World) -> None:
    job = world.submit(ring(tenant="vision", duration="45m"))
    waiting = world.job(job)
    assert (waiting.tenant, waiting.expected_s, waiting.started_at) == ("vision", 2700, None)
    world.wait(60)
    assert world.commit(world.propose(job, NODES)) is None
    assert world.job(job).started_at == world.now
    committed = world.now
    world.network(job)
    world.tell(job, "running")
    world.wait(60)
    assert world.job(job).started_at == committed
    world.write(lambda tx: operations.drain(tx, "a"))
    assert world.job(job).state is J.RESCHEDULING
    assert world.job(job).started_at == committed, "its workers still hold what they have"
    world.confirm(job)
    assert world.job(job).state is J.QUEUED
    assert world.job(job).started_at is None
    assert world.commit(world.propose(job, ["b", "c", "b"])) is None
    assert world.job(job).started_at == world.now
    world.cancel(job)
    world.confirm(job)
    assert world.job(job).started_at is None
