"""The queue as the scheduler holds it: promises, what time brings, what a restart costs, how it stands when asked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from bus_manager import FakeManager
from cluster_state import NOW, job, node
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import (
    RESYNC_S,
    Clock,
    ask,
    proposals,
    refusals,
    scheduler_on,
    step,
    waiting,
)

from ces_common import subjects
from ces_common.bus.port import PayloadTooLarge
from ces_common.messages.events import QueueStatus, TopologyChanged
from ces_common.messages.queries import QueueAnswer, QueueQuery
from ces_common.messages.records import JobRecord
from ces_common.states import AllocationState, JobState
from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.registry import get_solver
from ces_scheduler.service import REPORTS_AT_ONCE, RETRY_S, Scheduler

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.usefixtures("compiled")


def busy(name: str, *nodes: str, lasts: float | None = 3600.0, **fields: Any) -> JobRecord:
    """It fills its nodes since the beginning."""
    return job(name, nodes, task={"cpu": 4000}, expected_s=lasts, started_at=NOW, **fields)


def ended(record: JobRecord) -> JobRecord:
    over = [each.model_copy(update={"state": AllocationState.SUCCEEDED}) for each in record.allocations]
    return record.model_copy(update={"state": JobState.SUCCEEDED, "allocations": over})


async def queue_of(bus: MemoryBus) -> list[QueueStatus]:
    raw = await bus.request(subjects.rpc("scheduler", "queue"), QueueQuery().encode(), timeout_s=10)
    return QueueAnswer.model_validate_json(raw).statuses


async def test_whoever_waits_is_told_for_whom_and_until_when(scheduler: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[busy("r", "a", "b"), waiting("q")])
    await step(scheduler, wired)
    (refused,) = refusals(wired)
    assert refused.reason.code == "cpu-per-node"
    status = refused.queue_status
    assert (status.position, status.held_by, status.reserved) == (1, ["r"], False)
    assert refused.queue_status.start_at == NOW + HOUR


async def test_positions_are_no_news_but_are_told_when_asked(
    running: Scheduler, wired: FakeManager, bus: MemoryBus
) -> None:
    async def look() -> None:
        asked = wired.asked
        await wired.tell("topology", "changed", "t", TopologyChanged(links=0, media=0))
        await wired.until(lambda: wired.asked > asked)

    wired.change(jobs=[busy("r", "a", "b"), waiting("q1", expected_s=900.0)])
    await look()
    await wired.until(lambda: len(refusals(wired)) == 1)
    wired.change(jobs=[waiting("q2", expected_s=60.0)])
    await look()
    await wired.until(lambda: len(refusals(wired)) == 2)
    statuses = await queue_of(bus)
    assert [(each.job, each.position) for each in statuses] == [("q2", 1), ("q1", 2)]
    assert statuses[0].score.fit > statuses[1].score.fit
    assert [refused.job for refused in refusals(wired)] == ["q1", "q2"]


async def test_a_flood_is_told_how_it_stands_bit_by_bit_the_first_in_line_first(
    scheduler: Scheduler, wired: FakeManager, clock: Clock
) -> None:
    flood = [waiting(f"q{i:03}") for i in range(REPORTS_AT_ONCE + 50)]
    wired.change(jobs=[busy("r", "a", "b"), *flood])
    assert await step(scheduler, wired) == pytest.approx(RETRY_S)
    assert [refused.queue_status.position for refused in refusals(wired)] == list(range(1, REPORTS_AT_ONCE + 1))
    clock.now += RETRY_S
    assert await step(scheduler, wired) == RESYNC_S
    assert {refused.job for refused in refusals(wired)} == {each.id for each in flood}
    assert len(refusals(wired)) == len(flood), "nobody is told the same twice"


async def test_room_is_kept_once_a_job_is_overdue_and_time_alone_brings_that_about(
    scheduler: Scheduler, wired: FakeManager, clock: Clock
) -> None:
    wired.change(jobs=[busy("r", "a", lasts=4 * 3600.0), waiting("q")])
    assert await step(scheduler, wired) == RESYNC_S
    clock.now += 2 * 3600 - 60 - 10  # it was submitted a minute ago
    assert await step(scheduler, wired) == pytest.approx(10, abs=0.1)
    clock.now += 11
    await step(scheduler, wired)
    queue_status = refusals(wired)[-1].queue_status
    assert (queue_status.overdue, queue_status.reserved, queue_status.held_by) == (True, True, ["r"])
    assert queue_status.start_at == NOW + 4 * HOUR
    wired.change(jobs=[job("small", tasks=1, task={"cpu": 4000}, expected_s=9 * 3600.0)])
    await step(scheduler, wired)
    assert proposals(wired) == [], "it would be in the way"
    wired.change(jobs=[job("short", tasks=1, task={"cpu": 4000}, expected_s=600.0)])
    await step(scheduler, wired)
    assert [plan.job for plan in proposals(wired)] == ["short"]


async def test_a_promise_outlives_a_changed_cluster_and_falls_with_its_node(
    scheduler: Scheduler, wired: FakeManager, clock: Clock
) -> None:
    clock.now += 3 * 3600
    wired.change(jobs=[busy("r", "a", lasts=4 * 3600.0), waiting("q", cpu=4000)])
    await step(scheduler, wired)
    wired.change(nodes=[node("0", 9, cpu=100)])
    await step(scheduler, wired)
    assert [refused.queue_status.reserved for refused in refusals(wired)] == [True]
    wired.change(nodes=[node("b", 3, cordoned=True)])
    await step(scheduler, wired)
    assert [refused.queue_status.reserved for refused in refusals(wired)] == [True, False]


async def test_a_restart_loses_nothing_but_promises(
    scheduler: Scheduler, wired: FakeManager, bus: MemoryBus, clock: Clock
) -> None:
    clock.now += 3 * 3600
    running = busy("r", "a", lasts=4 * 3600.0)
    wired.change(jobs=[running, waiting("q")])
    await step(scheduler, wired)
    again = scheduler_on(bus, clock)
    await step(again, wired)
    first, second = refusals(wired)
    assert first.queue_status == second.queue_status, "the promise is made again, as nothing has changed"
    wired.change(jobs=[ended(running)])
    await step(again, wired)
    assert [plan.job for plan in proposals(wired)] == ["q"]


async def test_a_solver_that_fails_on_one_job_keeps_no_other_waiting(
    bus: MemoryBus, wired: FakeManager, clock: Clock
) -> None:
    class Moody:
        name, summary = "moody", ""

        def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
            if problem.name == "bad":
                raise RuntimeError("not today")
            return get_solver("greedy").solve(problem, seed=seed)

    scheduler = scheduler_on(bus, clock, placing(Moody()))
    wired.change(jobs=[waiting("bad", cpu=10), waiting("good", cpu=10)])
    await step(scheduler, wired)
    assert [plan.job for plan in proposals(wired)] == ["good"]
    (refused,) = refusals(wired)
    assert (refused.job, refused.reason.code) == ("bad", "solver-failed")
    assert "not today" in refused.reason.text


async def test_a_plan_that_does_not_fit_is_the_solvers_failure(
    bus: MemoryBus, wired: FakeManager, clock: Clock
) -> None:
    class Greedy:
        name, summary = "too-greedy", ""

        def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
            empty = problem.on_empty_cluster()
            return get_solver("greedy").solve(empty, seed=seed)

    scheduler = scheduler_on(bus, clock, placing(Greedy(), Parameters(crowded=None)))
    wired.change(jobs=[waiting("q1", cpu=2000), waiting("q2", cpu=2500)])
    await step(scheduler, wired)
    assert len(proposals(wired)) == 1
    assert [refused.reason.code for refused in refusals(wired)] == ["cpu-per-node"]
    wired.change(jobs=[waiting("q3", cpu=2000), job("r", ["a"], task={"cpu": 500})])
    await step(scheduler, wired)
    assert len(proposals(wired)) == 1
    assert refusals(wired)[-1].job == "q3"


async def test_a_plan_that_no_message_holds_is_said_and_left_alone(
    scheduler: Scheduler, wired: FakeManager, bus: MemoryBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = bus.publish_fact

    async def narrow(subject: str, data: bytes, **more: Any) -> Any:
        if subjects.matches(subjects.events("plan", "proposed"), subject):
            raise PayloadTooLarge(subject, len(data), 1)
        return await publish(subject, data, **more)

    monkeypatch.setattr(bus, "publish_fact", narrow)
    wired.change(jobs=[waiting("q")])
    for _ in range(3):
        await step(scheduler, wired)
    assert [refused.reason.code for refused in refusals(wired)] == ["plan-too-large"]


async def test_a_tenant_that_there_is_not_is_named(bus: MemoryBus, wired: FakeManager, clock: Clock) -> None:
    scheduler = scheduler_on(bus, clock, placing(parameters=Parameters(tenants=(Tenant("lab"),))))
    wired.change(jobs=[waiting("q", tenant="nobody"), waiting("p", tenant="lab", cpu=10)])
    await step(scheduler, wired)
    assert [plan.job for plan in proposals(wired)] == ["p"]
    (refused,) = refusals(wired)
    assert refused.queue_status is None
    assert "no tenant is called 'nobody'" in refused.reason.text


async def test_a_dry_run_says_how_the_job_would_stand(running: Scheduler, bus: MemoryBus, wired: FakeManager) -> None:
    wired.change(jobs=[busy("r", "a", "b"), waiting("q", expected_s=60.0)])
    answer = await ask(bus, duration="2h")
    assert not answer.feasible
    assert answer.reason is not None
    assert (answer.position, answer.start_at, answer.held_by) == (2, NOW + HOUR, ["r"])
    assert answer.refused["w-0"] == {"a": "cpu", "b": "cpu"}
    await wired.settled()
    assert wired.facts == []


async def test_a_dry_run_takes_no_room_that_is_kept_for_others(
    running: Scheduler, bus: MemoryBus, wired: FakeManager, clock: Clock
) -> None:
    clock.now += 3 * 3600
    wired.change(jobs=[busy("r", "a", lasts=4 * 3600.0), waiting("q", cpu=4000)])
    tasks = [{"name": "w", "command": ["x"], "resources": {"cpu": "3", "memory": "1Gi"}}]
    assert not (await ask(bus, tasks=tasks, flows={})).feasible
    assert (await ask(bus, tasks=tasks, flows={}, duration="10m")).feasible
