"""What becomes of a suspended job: cancelled, lost, reported on, cut off, or left to wait."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from manager_world import World, full_mesh, ring
from narrow_world import HOPS, NODES, left, low, narrow_world, suspended_in, urgent
from world_audit import findings

from ces_common.messages.plans import FlowPlan
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.states import AllocationState, JobState
from ces_manager.errors import Conflict
from ces_manager.jobs import commands
from ces_manager.nodes import operations

J = JobState


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with narrow_world(tmp_path) as made:
        yield made


@pytest.fixture
def suspended(world: World) -> str:
    return suspended_in(world)


@pytest.mark.parametrize("act", [commands.pause_job, commands.resume_job])
def test_a_user_cannot_resume_what_the_queue_has_suspended(world: World, suspended: str, act) -> None:
    with pytest.raises(Conflict, match="it goes on by itself as soon as there is room"):
        world.write(lambda tx: act(tx, suspended))


def test_flows_of_a_suspended_job_are_not_revised(world: World, suspended: str) -> None:
    flow = world.job(suspended).reserved[0]
    given = FlowPlan(src=flow.src, dst=flow.dst, rate=flow.min, path=flow.path)
    assert "suspended" in str(world.revise(suspended, given))


def test_a_suspended_job_is_cancelled(world: World, suspended: str) -> None:
    world.cancel(suspended)
    assert left(world)[0][1] < 2**30, "its workers may still run"
    world.confirm(suspended)
    assert left(world) == [(800, 2**30, 19_000_000)] * 3


def test_a_suspended_jobs_node_is_lost(world: World) -> None:
    suspended = suspended_in(world, disconnect="stop")
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat("b", "c")
    world.expire()
    assert world.job(suspended).state is J.RESCHEDULING
    world.confirm(suspended)
    assert world.job(suspended).state is J.QUEUED


def test_a_suspended_job_waits_without_a_deadline(world: World, suspended: str) -> None:
    world.wait(world.timeouts.starting_s * 10)
    world.beat(*NODES)
    assert not world.look().late
    assert world.job(suspended).state is J.SUSPENDED


def test_workers_that_ended_before_they_were_frozen_have_ended(world: World, suspended: str) -> None:
    world.tell(suspended, "exited", exit_code=0)
    assert world.job(suspended).state is J.SUCCEEDED
    assert world.job(suspended).released


def test_a_worker_that_failed_before_it_was_frozen_starts_again_when_its_job_goes_on(
    world: World, suspended: str
) -> None:
    world.tell(suspended, "exited", "w-1", exit_code=1)
    assert world.job(suspended).state is J.SUSPENDED
    assert [cpu for cpu, _, _ in left(world)] == [800] * 3
    assert world.commit(world.go_on(suspended)) is None
    world.tell(suspended, "running")
    assert {each.state for each in world.job(suspended).allocations} == {AllocationState.RUNNING}


def test_a_suspended_job_whose_flows_ended_at_a_forgotten_node_is_placed_anew(world: World) -> None:
    job, other = world.submit(low()), world.submit(ring("urgent", priority=90))
    world.run(job, NODES)
    world.tell(job, "exited", "w-0", exit_code=0)
    assert world.preempt(other, job) is None
    world.write(lambda tx: operations.cordon(tx, "a"))
    assert job in world.forget("a")
    assert world.job(job).state is J.RESCHEDULING


def test_the_auditor_agrees(world: World, suspended: str) -> None:
    world.run(urgent(world), NODES)
    other = urgent(world)
    assert world.commit(world.go_on(suspended)) is not None
    world.tell(other, "exited", exit_code=0)
    assert world.commit(world.go_on(suspended)) is None
    assert world.preempt(world.submit(ring("urgent", priority=90)), suspended) is None
    world.cancel(suspended)
    world.confirm(suspended)
    assert findings(world, dict.fromkeys(HOPS, 20_000_000)) == []
    assert findings(world, dict.fromkeys(HOPS, 10_000_000)) != [], "it has looked"


def test_a_report_of_frozen_workers_changes_nothing(world: World, suspended: str) -> None:
    (first, *_) = world.job(suspended).allocations
    worker = WorkerStatus(allocation=first.id, incarnation=1, state="paused")
    assert not world.report(Status(node=first.node, generation=0, workers=[worker]))


def test_a_suspended_job_whose_way_is_gone_for_good_is_placed_anew(world: World, suspended: str) -> None:
    world.put_topology(full_mesh(NODES, "12Mbit"))
    assert world.job(suspended).state is J.SUSPENDED, "its minimum still fits on an idle link"
    world.put_topology(full_mesh(NODES, "5Mbit"))
    record = world.job(suspended)
    assert record.state is J.RESCHEDULING
    assert "is too small" in (record.reason or "")
    world.confirm(suspended)
    assert (world.job(suspended).state, world.job(suspended).attempt) == (J.QUEUED, 2)


def test_how_long_a_suspended_job_has_run_is_told(world: World) -> None:
    job, urgent = world.submit(low()), world.submit(ring("urgent", priority=90))
    world.run(job, NODES)
    world.now += timedelta(seconds=40)
    assert world.job(job).ran_s is None
    assert world.preempt(urgent, job) is None
    world.now += timedelta(seconds=60)
    assert world.job(job).ran_s == 40
