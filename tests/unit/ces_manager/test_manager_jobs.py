"""A job's way through the manager's transactions, on SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from manager_world import World, audit, full_mesh, ring, sqlite_url

from ces_common.db import WriteTx
from ces_common.db.tables import JobRow
from ces_common.messages.events import FlowPlan, PlanRefused, Reason
from ces_common.messages.queries import SnapshotQuery
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import AllocationState, JobState
from ces_common.view import StateView
from ces_manager import cluster, jobs, plans, views
from ces_manager.errors import Conflict, NotFound
from ces_manager.measurements import Measurements

NODES = ["a", "b", "c"]
J, A = JobState, AllocationState


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(sqlite_url(tmp_path))
    made.add_nodes(*NODES)
    made.put_topology(full_mesh(NODES))
    yield made
    audit(made)
    made.close()


def states(world: World, job: str) -> list[AllocationState]:
    return [allocation.state for allocation in world.job(job).allocations]


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
        view = views.job_view(tx, job, Measurements())
        assert view.flows[0].enforced
        assert view.flows[0].bandwidth == 10_000_000
        assert views.plan_view(tx, job).assignments == {"w-0": "a", "w-1": "b", "w-2": "c"}
        assert all(link.reserved == 0 for link in views.topology_view(tx, Measurements()).links)


def test_the_same_key_gives_the_same_job(world: World) -> None:
    first = world.submit(ring(), "key")
    assert world.submit(ring(), "key") == first
    for other in (ring(tasks=2), ring(tenant="vision"), ring(duration="5m")):
        with pytest.raises(Conflict):
            world.submit(other, "key")
    assert world.submit(ring(), "other") != first


def test_a_key_from_before_there_were_later_fields_still_gives_its_job(world: World) -> None:
    """What a manager without them hashed: a client may repeat its request across an upgrade."""
    first = world.submit(ring(), "key")
    document = json.loads(ring().model_dump_json())
    assert document["flows"].pop("inputs") == []
    later = [document.pop(field) for field in ("tenant", "duration", "preemption")]
    assert later == ["default", None, "stop"]
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    with world.uow.read() as tx:
        row = tx.session.get(JobRow, first)
        assert row is not None
        assert row.body_hash == sha256(text.encode()).hexdigest()


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
    world.write(lambda tx: cluster.drain(tx, "a"))
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


def all_addresses_have_gone_round(tx: WriteTx) -> None:
    for node in NODES:
        cluster.node_row(tx, node).last_host = 0


def test_the_address_of_a_worker_that_is_done_stays_its_own_while_its_job_has_a_network(world: World) -> None:
    job = world.submit(ring())
    world.run(job, NODES)
    world.tell(job, "exited", "w-0", exit_code=0)
    world.write(all_addresses_have_gone_round)
    other = world.submit(ring("other"))
    assert world.commit(world.propose(other, NODES)) is None
    addresses = [allocation.address for each in (job, other) for allocation in world.job(each).allocations]
    assert len(set(addresses)) == 6


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ({"assignments": {"w-0": "a", "w-1": "b"}}, "exactly the job's tasks"),
        ({"assignments": {"w-0": "a", "w-1": "b", "w-2": "x"}}, "node x does not exist"),
        ({"flows": []}, "exactly the job's flows"),
        ({"attempt": 2}, "attempt 1"),
        ({"job": "nobody"}, "no job"),
        ({"assignments": {"w-0": "a", "w-1": "a", "w-2": "a"}}, "does not lead from"),
    ],
)
def test_a_plan_that_does_not_fit_is_rejected_and_changes_nothing(
    world: World, harm: dict[str, object], said: str
) -> None:
    job = world.submit(ring())
    before = world.snapshot()
    reason = world.commit(world.propose(job, NODES).model_copy(update=harm))
    assert reason is not None
    assert said in reason
    assert world.snapshot() == before
    assert world.events()[-1][1] == "plan.rejected"


def test_capacity_is_checked_against_what_is_committed_now(world: World) -> None:
    jobs_ = [world.submit(ring(tasks=2, low="60Mbit", high="60Mbit")) for _ in range(2)]
    plans_ = [world.propose(job, ["a", "b"], 60_000_000) for job in jobs_]
    assert world.commit(plans_[0]) is None
    reason = world.commit(plans_[1])
    assert reason == "link a -> b has 35 Mbit/s left, the plan asks for 60 Mbit/s"
    for _ in range(3):
        assert world.commit(world.propose(world.submit(ring(tasks=1)), ["a"])) is None
    reason = world.commit(world.propose(world.submit(ring(tasks=1)), ["a"]))
    assert reason == "node a has 0 cores left, the plan asks for 0.5 cores"
    world.write(lambda tx: cluster.cordon(tx, "c"))
    assert world.commit(world.propose(world.submit(ring(tasks=1)), ["c"])) == "node c is cordoned"


@pytest.mark.parametrize(("kind", "left"), [("veth", "47.5"), ("vxlan", "45")])
def test_links_of_one_medium_share_it(world: World, kind: str, left: str) -> None:
    file = full_mesh(NODES).model_dump(mode="json")
    for link in file["links"]:
        link |= {"medium": "air", "kind": kind}
    world.put_topology(
        type(full_mesh(NODES)).model_validate({**file, "media": [{"name": "air", "bandwidth": "50Mbit"}]})
    )
    job = world.submit(ring(tasks=2, low="30Mbit"))
    reason = world.commit(world.propose(job, ["a", "b"], 30_000_000))
    assert reason == f"medium air has {left} Mbit/s left, the plan asks for 60 Mbit/s"


def test_a_message_takes_effect_once(world: World) -> None:
    with world.uow.write(world.now) as tx:
        assert tx.first_time("m1")
    with world.uow.write(world.now) as tx:
        assert not tx.first_time("m1")


def test_why_a_job_waits_is_told_once(world: World) -> None:
    job = world.submit(ring())
    refused = PlanRefused(job=job, attempt=1, version=1, reason=Reason(code="cpu", text="too little"))
    for _ in range(2):
        world.write(lambda tx: plans.refuse_plan(tx, refused))
    assert [kind for _, kind in world.events()].count("job.waiting") == 1
    with world.uow.read() as tx:
        assert views.job_view(tx, job, Measurements()).waiting == refused.reason


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
    assert record.reason == "w-2 on c exited with code 4: out of memory (after 1 restarts)"
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


def test_pause_and_resume(world: World) -> None:
    job = world.submit(ring())
    with pytest.raises(Conflict):
        world.write(lambda tx: jobs.pause_job(tx, job))
    world.run(job, NODES)
    world.write(lambda tx: jobs.pause_job(tx, job))
    assert world.job(job).state is J.PAUSED
    world.tell(job, "paused")
    world.tell(job, "exited", "w-0", exit_code=1)
    assert world.job(job).state is J.PAUSED
    assert states(world, job) == [A.PENDING] * 3
    world.write(lambda tx: jobs.resume_job(tx, job))
    world.tell(job, "running")
    world.write(lambda tx: jobs.pause_job(tx, job))
    world.tell(job, "exited", exit_code=0)
    assert world.job(job).state is J.SUCCEEDED
    with pytest.raises(NotFound):
        world.write(lambda tx: jobs.resume_job(tx, "nobody"))


def test_workers_without_addresses_of_their_own_get_ports(world: World) -> None:
    world.add_nodes("p", "q", network="none")
    for _ in range(2):
        world.run(world.submit(ring(tasks=2, flows={})), ["p", "q"])
    ports = [(a.address, a.port) for job in world.snapshot().jobs for a in job.allocations]
    assert sorted(ports) == [("127.0.0.1", 20000 + i) for i in range(4)]


def test_a_flow_may_go_over_several_links(world: World) -> None:
    job = world.submit(ring(tasks=2))
    plan = world.propose(job, ["a", "c"])
    detour = plan.model_copy(
        update={"flows": [FlowPlan(src="w-0", dst="w-1", bandwidth=10**7, path=["a", "b", "c"]), plan.flows[1]]}
    )
    assert world.commit(detour) is None
    with world.uow.read() as tx:
        reserved = {(link.src, link.dst): link.reserved for link in views.topology_view(tx, Measurements()).links}
    assert {link for link, total in reserved.items() if total} == {("a", "b"), ("b", "c"), ("c", "a")}


def test_readers_follow_by_changes(world: World) -> None:
    view = StateView()
    view.merge(world.snapshot(view.query()))
    assert set(view.nodes) == set(NODES)
    job = world.submit(ring())
    for act in (
        lambda: world.run(job, NODES),
        lambda: world.write(lambda tx: cluster.cordon(tx, "a")),
        lambda: world.put_topology(full_mesh(NODES, "200Mbit")),
        lambda: world.cancel(job),
        lambda: world.confirm(job),
    ):
        act()
        change = world.snapshot(view.query())
        assert not change.full
        assert view.merge(change)
        fresh = StateView()
        fresh.merge(world.snapshot())
        assert (view.nodes, view.topology, view.jobs) == (fresh.nodes, fresh.topology, fresh.jobs)
        assert world.snapshot(view.query()).jobs == []
    assert world.snapshot(SnapshotQuery(since=1, epoch="another")).full
    assert world.snapshot(SnapshotQuery(since=10**6, epoch=view.epoch)).full
