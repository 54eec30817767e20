"""Jobs that make room for more urgent ones: what they give up, what they keep, and how they go on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from manager_world import World, ring
from narrow_world import NODES, left, low, narrow_world, suspended_in, told, urgent

from ces_common.db.outbox import ALL, events_after
from ces_common.db.tables import AllocationRow, HopRow
from ces_common.messages.events import JobChanged, PlanRefused, Reason, parse_event
from ces_common.messages.plans import PlanRevised, PreemptionCommitted, PreemptionRejected
from ces_common.queuefile import QueueFile
from ces_common.states import AllocationState, JobState
from ces_manager.jobs import commands, job_views
from ces_manager.measurements import Measurements
from ces_manager.nodes import operations, rows
from ces_manager.plans import refusal
from ces_manager.queue.live import QueueReport
from ces_manager.queue.page import queue_page

J = JobState
WHY = "makes room for job urgent, whose priority is 90 instead of 10"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with narrow_world(tmp_path) as made:
        yield made


@pytest.fixture
def suspended(world: World) -> str:
    return suspended_in(world)


def shown(world: World, job: str):
    with world.uow.read() as tx:
        return job_views.job_view(tx, job, Measurements())


def test_a_suspended_job_keeps_its_memory_and_gives_up_cpu_and_bandwidth(world: World) -> None:
    empty = left(world)
    job, other = world.submit(low()), world.submit(ring("urgent", priority=90))
    world.run(job, NODES)
    before = world.job(job)
    assert world.commit(world.propose(other, NODES)) is not None
    assert world.preempt(other, job) is None
    after = world.job(job)
    assert (after.state, after.attempt, after.reason) == (J.SUSPENDED, 1, WHY)
    assert after.allocations == before.allocations
    assert [(flow.number, flow.path, flow.rate) for flow in after.reserved] == [
        (flow.number, flow.path, 0) for flow in before.reserved
    ]
    memory = ring().expand_tasks()[0].memory
    assert left(world) == [(cpu, all_of_it - memory, rate) for cpu, all_of_it, rate in empty]
    with world.uow.read() as tx:
        assert tx.session.query(HopRow).count() == 0
    revised, changed = told(world, job)[-2:]
    assert isinstance(revised, PlanRevised)
    assert (revised.cause, len(revised.flows)) == ("suspended", 3)
    assert [(flow.min, flow.rate) for flow in revised.short] == [(10_000_000, 0)] * 3
    assert isinstance(changed, JobChanged)
    assert (changed.previous, changed.state, changed.reason) == (J.RUNNING, J.SUSPENDED, WHY)
    world.run(other, NODES)


def test_who_was_told_is_known_to_whoever_sees_all_tenants(world: World, suspended: str) -> None:
    with world.uow.read() as tx:
        events = events_after(tx, 0, ALL, 10**4)
    [committed] = [event for event in events if event.type == "ces.v1.preemption.committed"]
    data = parse_event(committed.body.encode()).data
    assert isinstance(data, PreemptionCommitted)
    assert [(victim.job, victim.how) for victim in data.victims] == [(suspended, "suspend")]
    assert (data.job, committed.job, committed.tenant) == (urgent(world), None, None)


def test_a_victim_hears_of_the_urgent_job_only_within_its_tenant(world: World) -> None:
    job, other = world.submit(low()), world.submit(ring("urgent", priority=90).model_copy(update={"tenant": "other"}))
    world.run(job, NODES)
    assert world.preempt(other, job) is None
    reason = world.job(job).reason
    assert reason == "makes room for a job of another tenant, whose priority is 90 instead of 10"


def test_a_suspended_job_goes_on_where_it_is(world: World, suspended: str) -> None:
    committed, running = world.now, world.job(suspended)
    world.wait(120)
    world.cancel(urgent(world))
    assert world.commit(world.go_on(suspended, 15_000_000)) is None
    record = world.job(suspended)
    assert (record.state, record.attempt, record.reason) == (J.RUNNING, 1, None)
    assert record.allocations == running.allocations
    assert [flow.number for flow in record.reserved] == [flow.number for flow in running.reserved]
    assert {flow.rate for flow in record.reserved} == {15_000_000}
    assert record.started_at == committed + timedelta(seconds=120), "its end is reckoned from here"
    assert [cpu for cpu, _, _ in left(world)] == [300] * 3
    revised, changed = told(world, suspended)[-2:]
    assert isinstance(revised, PlanRevised)
    assert isinstance(changed, JobChanged)
    assert (revised.cause, revised.short, changed.state) == ("resumed", [], J.RUNNING)
    with world.uow.read() as tx:
        plan = job_views.plan_view(tx, suspended)
    assert (plan.plan, plan.attempt) == (revised.revision, 1)
    world.tell(suspended, "exited", exit_code=0)
    assert world.job(suspended).state is J.SUCCEEDED


def test_each_suspension_moves_the_reckoned_end(world: World, suspended: str) -> None:
    start = world.now
    for _ in range(2):
        world.wait(10)
        assert world.commit(world.go_on(suspended)) is None
        world.wait(10)
        assert world.preempt(urgent(world), suspended) is None
    assert world.job(suspended).started_at == start + timedelta(seconds=20)


def test_a_suspended_job_asks_only_for_what_it_gave_up(world: World, suspended: str) -> None:
    """Its own memory is no obstacle, nor is a cordon; a node that is full, slow or gone is."""
    world.write(lambda tx: set_memory(tx, 1))
    world.write(lambda tx: operations.cordon(tx, "a"))
    assert world.commit(world.go_on(suspended, 30_000_000)) == (
        "link a › b has 19 Mbit/s left, the plan asks for 30 Mbit/s"
    )
    world.write(lambda tx: set_cpu(tx, "b", 400))
    assert world.commit(world.go_on(suspended)) == "node b has 0.4 cores left, the plan asks for 0.5 cores"
    assert world.job(suspended).state is J.SUSPENDED
    assert left(world)[0][0] == 800, "a rejected plan changes nothing"
    world.write(lambda tx: set_cpu(tx, "b", 500))
    assert world.commit(world.go_on(suspended)) is None
    world.write(lambda tx: set_memory(tx, 2**30))


def set_cpu(tx, name: str, cpu: int) -> None:
    rows.node_row(tx, name).cpu = cpu


def set_memory(tx, memory: int) -> None:
    for name in NODES:
        rows.node_row(tx, name).memory = memory


def test_a_suspended_job_cannot_go_on_elsewhere_or_as_another_attempt(world: World, suspended: str) -> None:
    assert "can only go on where it is" in str(world.commit(world.propose(suspended, ["b", "c", "a"])))
    late = world.go_on(suspended).model_copy(update={"attempt": 2})
    assert world.commit(late) == "job low is at attempt 1, the plan is for 2"
    short = world.go_on(suspended)
    assert world.commit(short.model_copy(update={"flows": short.flows[1:]})) is not None
    assert world.commit(short.model_copy(update={"assignments": {"w-0": "a"}})) is not None


def test_tasks_that_are_over_ask_for_nothing(world: World) -> None:
    job, other = world.submit(low()), world.submit(ring("urgent", priority=90))
    world.run(job, NODES)
    world.tell(job, "exited", "w-0", exit_code=0)
    assert world.preempt(other, job) is None
    world.write(lambda tx: set_cpu(tx, "a", 100))
    assert world.commit(world.go_on(job)) is None
    assert [cpu for cpu, _, _ in left(world)] == [100, 300, 300]
    with world.uow.read() as tx:
        rows = tx.session.query(AllocationRow).order_by(AllocationRow.rank)
        assert [row.cpu for row in rows if row.state == AllocationState.RUNNING] == [500, 500]


def test_a_job_is_stopped_for_another_and_queues_anew(world: World) -> None:
    job, other = world.submit(ring("low", priority=10)), world.submit(ring("urgent", priority=90))
    world.run(job, NODES)
    assert world.preempt(other, job, how="stop") is None
    assert (world.job(job).state, world.job(job).reason) == (J.RESCHEDULING, WHY)
    assert world.commit(world.propose(other, NODES)) is not None, "its workers may still run"
    world.confirm(job)
    assert (world.job(job).state, world.job(job).attempt, world.job(job).reason) == (J.QUEUED, 2, WHY)
    world.run(other, NODES)


@pytest.mark.parametrize("how", ["paused", "planned", "suspended"])
def test_what_has_a_place_can_be_stopped(world: World, how: str) -> None:
    job, other = world.submit(low()), world.submit(ring("urgent", priority=90))
    if how == "planned":
        assert world.commit(world.propose(job, NODES)) is None
    else:
        world.run(job, NODES)
    if how == "paused":
        world.write(lambda tx: commands.pause_job(tx, job))
    if how == "suspended":
        assert world.preempt(other, job) is None
    assert world.preempt(other, job, how="stop") is None
    world.confirm(job)
    assert world.job(job).state is J.QUEUED
    assert [cpu for cpu, _, _ in left(world)] == [800] * 3


def test_all_victims_or_none(world: World) -> None:
    one, two = world.submit(low("one", tasks=1)), world.submit(ring("two", tasks=1, priority=10))
    other = world.submit(ring("urgent", priority=90))
    world.run(one, ["a"])
    world.run(two, ["b"])
    before = world.snapshot().jobs
    assert "does not let itself be suspended" in str(world.preempt(other, one, two))
    assert world.snapshot().jobs == before
    assert world.preempt(other, one, two, how="stop") is None
    assert {world.job(job).state for job in (one, two)} == {J.RESCHEDULING}


def test_two_proposals_from_one_state_send_one_set_of_victims_away(world: World) -> None:
    one, two = world.submit(ring("one", tasks=1, priority=10)), world.submit(ring("two", tasks=1, priority=10))
    other, third = (world.submit(ring(name, priority=90)) for name in ("urgent", "urgent-too"))
    world.run(one, ["a"])
    world.run(two, ["b"])
    version = world.snapshot().version
    assert world.preempt(other, one, how="stop", version=version) is None
    made = world.snapshot().version
    said = world.preempt(other, two, how="stop", version=version)
    assert said == f"others already make room for job urgent since version {made}"
    (rejected,) = [each for each in told(world, None) if isinstance(each, PreemptionRejected)]
    assert rejected.stale, "the scheduler looks again at once"
    assert world.job(two).state is J.RUNNING
    assert world.preempt(other, two, how="stop") == "one must go first, to make room for job urgent"
    assert world.preempt(third, one, how="stop") is not None, "it has no place to give any more"
    world.confirm(one)
    assert world.preempt(other, two, how="stop") is None, "what the first gave was not enough"


@pytest.mark.parametrize("how", ["confirmed", "cancelled"])
def test_a_second_set_goes_only_for_who_has_seen_the_first_gone(world: World, how: str) -> None:
    one, two = world.submit(ring("one", tasks=1, priority=10)), world.submit(ring("two", tasks=1, priority=10))
    other = world.submit(ring("urgent", priority=90))
    world.run(one, ["a"])
    world.run(two, ["b"])
    assert world.preempt(other, one, how="stop") is None
    if how == "cancelled":
        world.cancel(one)
    assert world.preempt(other, two, how="stop") == "one must go first, to make room for job urgent"
    version = world.snapshot().version
    world.confirm(one)
    said = world.preempt(other, two, how="stop", version=version)
    assert said == f"job one, which made room for job urgent, has changed since version {version}"
    rejected = [each for each in told(world, None) if isinstance(each, PreemptionRejected)]
    assert [each.stale for each in rejected] == [True, True]
    assert world.job(two).state is J.RUNNING
    assert world.preempt(other, two, how="stop") is None


def test_a_second_set_goes_only_for_who_has_seen_a_suspended_job_go_on(world: World) -> None:
    one, two = world.submit(low("one", tasks=1)), world.submit(ring("two", tasks=1, priority=10))
    other = world.submit(ring("urgent", priority=90))
    world.run(one, ["a"])
    world.run(two, ["b"])
    assert world.preempt(other, one) is None
    version = world.snapshot().version
    assert world.commit(world.go_on(one)) is None
    said = world.preempt(other, two, how="stop", version=version)
    assert said == f"job one, which made room for job urgent, has changed since version {version}"
    assert world.job(two).state is J.RUNNING
    assert world.preempt(other, two, how="stop") is None


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        (QueueFile(), "the queue file sets no preemption"),
        (QueueFile(preemption=81), "has 10: the queue file's preemption asks for 81 less"),
        (QueueFile(preemption=80), None),
    ],
)
def test_only_as_the_queue_file_allows(world: World, queue: QueueFile, said: str | None) -> None:
    job, other = world.submit(low()), world.submit(ring("urgent", priority=90))
    world.run(job, NODES)
    reason = world.preempt(other, job, queue=queue)
    assert (reason is None) if said is None else said in str(reason)
    assert world.job(job).state is (J.SUSPENDED if said is None else J.RUNNING)


def test_what_cannot_be_taken_is_said(world: World) -> None:
    job, other = world.submit(low()), world.submit(ring("urgent", priority=90))
    assert world.preempt(other, job) == "job low is queued and has no place to give"
    version = world.snapshot().version
    world.run(job, NODES)
    assert world.preempt(other, job, version=version) == f"job low has changed since version {version}"
    assert world.preempt(other, job, job) == "it names a victim twice"
    assert world.preempt(other, other) == "job urgent cannot make room for itself"
    assert world.preempt(job, other) == "job low is running and does not wait"
    world.write(lambda tx: commands.pause_job(tx, job))
    assert world.preempt(other, job) == "job low is paused; only a running job can be suspended"
    rejected = [each for each in told(world, None) if isinstance(each, PreemptionRejected)]
    assert [each.stale for each in rejected] == [True, True, False, False, True, True]


def test_a_suspended_job_may_take_the_place_of_others(world: World, suspended: str) -> None:
    lower = world.submit(low("lower", tasks=1, priority=0))
    world.run(lower, ["a"])
    assert world.preempt(suspended, lower) is None
    assert world.job(lower).reason == "makes room for job low, whose priority is 10 instead of 0"


def test_a_suspended_job_stands_in_the_queue_and_says_what_it_waits_for(world: World, suspended: str) -> None:
    waits = Reason(code="cpu", text="too little CPU on a")
    world.write(lambda tx: refusal.note_refusal(tx, PlanRefused(job=suspended, attempt=1, version=1, reason=waits)))
    assert (shown(world, suspended).waiting, shown(world, suspended).reason) == (waits, WHY)
    with world.uow.read() as tx:
        assert [(entry.name, entry.reason) for entry in queue_page(tx, QueueReport(), after=0, limit=9).items] == [
            ("urgent", None),
            ("low", waits),
        ]
    assert world.commit(world.go_on(suspended)) is None
    assert shown(world, suspended).waiting is None
    with world.uow.read() as tx:
        assert [entry.name for entry in queue_page(tx, QueueReport(), after=0, limit=9).items] == ["urgent"]


@pytest.mark.parametrize("way", ["drained", "stopped"])
def test_what_it_waited_for_is_forgotten_when_it_queues_anew(world: World, suspended: str, way: str) -> None:
    waits = Reason(code="cpu", text="too little CPU on a")
    world.write(lambda tx: refusal.note_refusal(tx, PlanRefused(job=suspended, attempt=1, version=1, reason=waits)))
    if way == "drained":
        world.write(lambda tx: operations.drain(tx, "a"))
    else:
        assert world.preempt(urgent(world), suspended, how="stop") is None
    assert shown(world, suspended).waiting is None
    world.confirm(suspended)
    assert world.job(suspended).state is J.QUEUED
    assert shown(world, suspended).waiting is None
