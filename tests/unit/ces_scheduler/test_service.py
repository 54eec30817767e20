"""The scheduler over a bus in memory: what it proposes, and when it proposes it again."""

from __future__ import annotations

import asyncio
import threading

import pytest
from bus_manager import PATIENCE_S, FakeManager
from cluster_state import MBIT, job, node
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import LINKS, NODES, RESYNC_S, Clock, ask, proposals, refusals, reject, scheduler_on, step, waiting

from ces_common import subjects
from ces_common.bus.port import BusError
from ces_common.messages.events import JobChanged
from ces_common.states import JobState
from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.registry import DEFAULT, get_solver
from ces_scheduler.proposals import IN_FLIGHT_S, backoff_s
from ces_scheduler.service import RETRY_S, Scheduler


async def test_a_waiting_job_is_proposed_once_with_the_version_that_was_seen(
    scheduler: Scheduler, wired: FakeManager
) -> None:
    wired.change(jobs=[waiting()])
    assert scheduler.missing() == "the manager's snapshot"
    assert await step(scheduler, wired) == RETRY_S
    assert scheduler.missing() is None
    assert await step(scheduler, wired) == RETRY_S
    (plan,) = proposals(wired)
    assert (plan.job, plan.attempt, plan.version) == ("q", 1, 2)
    assert set(plan.assignments.values()) == {"a", "b"}
    assert [flow.rate for flow in plan.flows] == [50 * MBIT]
    assert plan.solver == get_solver(DEFAULT).name != DEFAULT
    assert plan.considered["bound"] >= plan.metrics["composite"]
    assert set(plan.considered) == {
        "bound",
        "decision_ms",
        "fallback",
        "lacking",
        "policy",
        "refused",
        "seed",
        "sparing",
        "time_limit_s",
    }


async def test_the_version_is_that_of_the_offer_though_the_state_moves_on_meanwhile(
    bus: MemoryBus, wired: FakeManager, clock: Clock
) -> None:
    class Slow:
        """Decides only after the scheduler has read the state again, as a dry run makes it do."""

        name, summary = "slow", ""

        def __init__(self) -> None:
            self.loop = asyncio.get_running_loop()

        def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
            wired.change(nodes=[node("c", 4)])
            asyncio.run_coroutine_threadsafe(scheduler.reader.refresh(), self.loop).result(10)
            return get_solver(DEFAULT).solve(problem, seed=seed)

    scheduler = scheduler_on(bus, clock, placing(Slow()))
    wired.change(jobs=[waiting()])
    await step(scheduler, wired)
    assert scheduler.reader.view.version == 3
    assert [plan.version for plan in proposals(wired)] == [2]


class Timed:
    """Notes how long it may take."""

    name, summary = "timed", ""

    def __init__(self) -> None:
        self.limits: list[float | None] = []

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        self.limits.append(time_limit_s)
        return get_solver(DEFAULT).solve(problem, seed=seed)


@pytest.mark.parametrize(
    ("limit_s", "crowd", "each_s"), [(2.0, 2, 1.0), (2.0, 4, 0.5), (2.0, 40, 0.5), (None, 4, None)]
)
async def test_jobs_that_wait_together_share_the_time(
    bus: MemoryBus, wired: FakeManager, limit_s: float | None, crowd: int, each_s: float | None
) -> None:
    solver = Timed()
    scheduler = scheduler_on(bus, Clock(), placing(solver, time_limit_s=limit_s))
    wired.change(jobs=[waiting("alone", cpu=10)])
    await step(scheduler, wired)
    wired.change(jobs=[job(f"q{i}", tasks=1, task={"cpu": 10, "memory": 1}) for i in range(crowd)])
    await step(scheduler, wired)
    assert solver.limits == [limit_s, *[each_s] * crowd], "the first waits for its answer, not for a place"
    assert [plan.considered["time_limit_s"] for plan in proposals(wired)] == solver.limits


async def test_it_is_not_ready_and_decides_nothing_while_the_solver_is_compiled(
    bus: MemoryBus, wired: FakeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, compiled = threading.Event(), threading.Event()

    def compile_slowly(_: object) -> None:
        begun.set()
        compiled.wait()

    monkeypatch.setattr("ces_scheduler.compilation.warm_up", compile_slowly)
    wired.change(jobs=[waiting()])
    scheduler = scheduler_on(bus, Clock())
    task = asyncio.create_task(scheduler.run())
    try:
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        assert scheduler.missing() == "the solver is being compiled"
        with pytest.raises(BusError):
            await ask(bus)
        assert wired.asked == 0
        compiled.set()
        await wired.until(lambda: bool(proposals(wired)))
        assert scheduler.missing() is None
    finally:
        compiled.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await scheduler.reader.close()


async def test_a_solver_that_cannot_be_warmed_up_keeps_no_job_from_being_tried(
    bus: MemoryBus, wired: FakeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("ces_scheduler.compilation.warm_up", fails)
    wired.change(jobs=[waiting()])
    scheduler = scheduler_on(bus, Clock())
    task = asyncio.create_task(scheduler.run())
    try:
        await wired.until(lambda: bool(proposals(wired)))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await scheduler.reader.close()


async def test_what_is_proposed_counts_as_used(scheduler: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[waiting("q1"), waiting("q2")])
    await step(scheduler, wired)
    assert [plan.job for plan in proposals(wired)] == ["q1"]
    assert [refused.job for refused in refusals(wired)] == ["q2"]
    wired.change(jobs=[waiting("q3")])
    await step(scheduler, wired)
    assert [plan.job for plan in proposals(wired)] == ["q1"], "the first is still without an answer"


async def test_urgent_jobs_come_first(scheduler: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[waiting("q1"), waiting("q2", priority=80)])
    await step(scheduler, wired)
    assert [plan.job for plan in proposals(wired)] == ["q2"]


async def test_a_small_job_goes_where_a_large_one_has_no_place(scheduler: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[waiting("large", 9000, priority=80), waiting("small", 10)])
    await step(scheduler, wired)
    assert [plan.job for plan in proposals(wired)] == ["small"]
    (refused,) = refusals(wired)
    assert (refused.job, refused.reason.resource, refused.reason.forever) == ("large", "cpu", True)


async def test_a_commit_ends_the_wait(scheduler: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[waiting()])
    await step(scheduler, wired)
    wired.change(jobs=[job("q", ["a", "b"], state="planned", task={"cpu": 3000})])
    assert await step(scheduler, wired) == RESYNC_S
    assert len(proposals(wired)) == 1


async def test_a_rejected_plan_is_tried_again(scheduler: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[waiting()])
    await step(scheduler, wired)
    (first,) = proposals(wired)
    await reject(wired, first.plan)
    await step(scheduler, wired)
    assert len(proposals(wired)) == 2
    assert proposals(wired)[1].plan != first.plan


async def test_a_job_whose_plans_are_rejected_again_and_again_is_left_alone_longer_and_longer(
    scheduler: Scheduler, wired: FakeManager, clock: Clock
) -> None:
    wired.change(jobs=[waiting()])
    waits = []
    for _ in range(5):
        before, start = len(proposals(wired)), clock.now
        while len(proposals(wired)) == before:
            wait_s = await step(scheduler, wired)
            if len(proposals(wired)) == before:
                assert wait_s == RETRY_S
                clock.now += 0.5
        waits.append(clock.now - start)
        await reject(wired, proposals(wired)[-1].plan)
    assert waits[:2] == [0, 0]
    assert waits[2] < waits[3] < waits[4]
    assert backoff_s(1000) == 30
    wired.change(jobs=[waiting(attempt=2)])
    await step(scheduler, wired)
    assert proposals(wired)[-1].attempt == 2, "another attempt is another matter"


async def test_the_rejection_of_another_plan_says_nothing_of_ours(scheduler: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[waiting()])
    await step(scheduler, wired)
    await reject(wired, "another-schedulers-plan")
    await step(scheduler, wired)
    assert len(proposals(wired)) == 1


async def test_a_proposal_without_an_answer_counts_as_lost_after_a_while(
    scheduler: Scheduler, wired: FakeManager, clock: Clock
) -> None:
    wired.change(jobs=[waiting()])
    await step(scheduler, wired)
    clock.now += IN_FLIGHT_S - 0.1
    await step(scheduler, wired)
    assert len(proposals(wired)) == 1
    clock.now += 0.2
    await step(scheduler, wired)
    assert len(proposals(wired)) == 2


async def test_an_answer_that_cannot_be_read_is_passed_over(
    bus: MemoryBus, scheduler: Scheduler, wired: FakeManager
) -> None:
    wired.change(jobs=[waiting()])
    await step(scheduler, wired)
    await bus.publish_fact(subjects.event("plan", "rejected", "x"), b"rubbish", message_id="1")
    await reject(wired, proposals(wired)[0].plan)
    await step(scheduler, wired)
    assert len(proposals(wired)) == 2, "the next one is heard"


async def test_without_a_manager_it_tries_again_soon(bus: MemoryBus) -> None:
    assert await scheduler_on(bus, Clock()).step() == RETRY_S


async def test_without_nodes_a_job_waits_for_the_first(bus: MemoryBus, manager: FakeManager, clock: Clock) -> None:
    manager.change(jobs=[waiting()])
    scheduler = scheduler_on(bus, clock)
    await step(scheduler, manager)
    await step(scheduler, manager)
    assert [refused.reason.code for refused in refusals(manager)] == ["no-nodes"]
    manager.change(nodes=NODES, links=LINKS)
    await step(scheduler, manager)
    assert len(proposals(manager)) == 1


async def test_two_hints_lead_to_one_proposal(running: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[waiting()])
    for _ in range(2):
        await wired.tell("job", "queued", "q", JobChanged(job="q", name="q", attempt=1, state=JobState.QUEUED))
    await wired.until(lambda: bool(proposals(wired)))
    asked = wired.asked
    await wired.tell("job", "queued", "q", JobChanged(job="q", name="q", attempt=1, state=JobState.QUEUED))
    await wired.until(lambda: wired.asked > asked)
    await wired.settled()
    assert len(proposals(wired)) == 1
