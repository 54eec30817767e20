"""Nodes that are removed for good: what they held, who hears of it, who may come back."""

from __future__ import annotations

import pytest
from manager_world import World, ring
from sqlalchemy import select

from ces_common.db.tables import LeaseRow
from ces_common.messages.plans import FlowPlan
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import AllocationState, JobState
from ces_manager.errors import Conflict, NotFound
from ces_manager.nodes import operations
from ces_manager.nodes.revocation import revoked_keys

NODES = ["a", "b", "c", "d"]


J, A = JobState, AllocationState


def silence(world: World, *nodes: str) -> None:
    """Let these nodes be lost."""
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat(*(node for node in NODES if node not in nodes))
    world.expire()


def test_what_a_lost_node_held_for_a_job_that_keeps_running_is_given_back(world: World) -> None:
    job = world.submit(ring(disconnect="keep"))
    world.run(job, NODES)
    silence(world, "c")
    assert world.job(job).state is J.RUNNING
    assert world.forget("c") == [job]
    record = world.job(job)
    assert record.state is J.RESCHEDULING
    assert record.reason == "node c was forgotten"
    assert [a.state for a in record.allocations] == [A.STOPPING, A.STOPPING, A.LOST]
    world.confirm(job)
    assert world.job(job).state is J.QUEUED
    assert world.commit(world.propose(job, NODES)) == "node c does not exist"
    world.run(job, ["a", "b", "d"])
    assert "node.changed" in {kind for _, kind in world.events()}


def test_a_job_that_is_over_but_could_not_confirm_is_released(world: World) -> None:
    job = world.submit(ring(tasks=1, disconnect="keep"))
    world.run(job, ["a"])
    world.cancel(job)
    silence(world, "a")
    assert not world.job(job).released
    world.forget("a")
    record = world.job(job)
    assert (record.state, record.released) == (J.CANCELLED, True)
    assert world.snapshot().jobs == []


def test_a_job_whose_flows_only_pass_the_node_is_placed_anew(world: World) -> None:
    job = world.submit(ring(tasks=2))
    plan = world.propose(job, ["a", "b"])
    flows = [FlowPlan(**(flow.model_dump() | {"path": [flow.path[0], "d", flow.path[1]]})) for flow in plan.flows]
    assert world.commit(plan.model_copy(update={"flows": flows})) is None
    world.network(job)
    world.tell(job, "running")
    silence(world, "d")
    assert world.job(job).state is J.RUNNING
    assert world.forget("d") == [job]
    assert world.job(job).state is J.RESCHEDULING


def test_what_may_still_run_is_not_forgotten(world: World) -> None:
    job = world.submit(ring(tasks=1, disconnect="stop"))
    world.run(job, ["a"])
    with pytest.raises(Conflict, match="node a is alive: drain it first"):
        world.forget("a")
    world.write(lambda tx: operations.drain(tx, "a"))
    with pytest.raises(Conflict, match="not empty yet: ring/w-0"):
        world.forget("a")
    world.wait(world.timeouts.unreachable_after_s + 1)
    world.expire()
    with pytest.raises(Conflict, match="its work ends in 29 s at the latest"):
        world.forget("a")
    world.restart()  # a new manager has not observed anything yet
    world.expire()
    with pytest.raises(Conflict, match="its work ends in 40 s"):
        world.forget("a")
    assert world.job(job).state is J.RESCHEDULING
    silence(world, "a")
    world.forget("a")
    with pytest.raises(NotFound):
        world.forget("a")


def test_a_drained_node_that_is_empty_may_be_forgotten_while_it_lives(world: World) -> None:
    job = world.submit(ring(tasks=1))
    world.run(job, ["a"])
    world.write(lambda tx: operations.drain(tx, "a"))
    world.confirm(job)
    assert world.forget("a") == []
    with world.uow.read() as tx:
        assert "a" not in tx.session.scalars(select(LeaseRow.node)).all()
        assert len(revoked_keys(tx)) == 1
    assert world.beat("a") == {"a"}, "its heartbeats are a stranger's"


def test_a_late_report_of_a_forgotten_node_moves_nothing(world: World) -> None:
    job = world.submit(ring(tasks=2, disconnect="keep"))
    world.run(job, ["a", "b"])
    held = next(a for a in world.job(job).allocations if a.node == "a")
    silence(world, "a")
    world.forget("a")
    before = world.job(job)
    worker = WorkerStatus(allocation=held.id, incarnation=1, state="running")
    assert not world.report(Status(node="a", generation=10**9, workers=[worker]))
    assert world.job(job) == before


def test_the_links_wait_for_a_successor_of_the_name(world: World) -> None:
    silence(world, "a")
    world.forget("a")
    assert len(world.snapshot().topology.links) == 12
    world.add_nodes("a")
    job = world.submit(ring(tasks=2))
    world.run(job, ["a", "b"])
