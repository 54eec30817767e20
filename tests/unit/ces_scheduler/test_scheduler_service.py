"""The scheduler over a bus in memory: what it proposes, when it speaks again, when it keeps quiet."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bus_manager import PATIENCE_S, FakeManager
from cluster_state import MBIT, job, node, wire

from ces_common import subjects
from ces_common.bus import BusError, BusUnavailable, MemoryBus, RemoteError
from ces_common.jobfile import JobFile
from ces_common.messages.events import JobChanged, PlanRejected
from ces_common.messages.queries import PlanAnswer, PlanQuery
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.plan import Result
from ces_core.problem import Problem
from ces_core.solvers import DEFAULT, get_solver
from ces_core.solvers.warm import warm_up
from ces_scheduler.backoff import backoff_s
from ces_scheduler.service import EVENTS, IN_FLIGHT_S, RETRY_S, Scheduler

RESYNC_S = 30.0
NODES = [node("a", 1), node("s", 2, cpu=0, memory=0), node("b", 3)]
LINKS = [*wire("a", "s"), *wire("s", "b")]
ROOT = Path(__file__).parents[3]


def waiting(name: str = "q", cpu: int = 3000, **fields: Any) -> JobRecord:
    """Two tasks, each of which fills a node for the most part."""
    return job(name, tasks=2, asked=[(0, 1, 10 * MBIT, 50 * MBIT)], task={"cpu": cpu}, **fields)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Nobody's patience is meant to last for this."""
    warm_up(get_solver(DEFAULT))


@pytest.fixture
def manager(manager: FakeManager) -> FakeManager:
    manager.change(nodes=NODES, links=LINKS)
    return manager


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def scheduler(bus: MemoryBus, clock: Clock) -> AsyncIterator[Scheduler]:
    """Steps are taken by the test; its ears are open as in service."""
    scheduler = Scheduler(bus, get_solver(DEFAULT), RESYNC_S, clock)
    await scheduler.reader.start(EVENTS, scheduler._event)
    yield scheduler
    await scheduler.reader.close()


def proposals(manager: FakeManager) -> list[Any]:
    return manager.told("plan.proposed")


async def step(scheduler: Scheduler, manager: FakeManager) -> float:
    wait_s = await scheduler.step()
    await manager.settled()
    return wait_s


async def reject(manager: FakeManager, plan: str, name: str = "q", attempt: int = 1) -> None:
    await manager.tell("plan", "rejected", plan, PlanRejected(plan=plan, job=name, attempt=attempt, reason="no"))
    await manager.settled()


async def test_a_waiting_job_is_proposed_once_with_the_version_that_was_seen(
    scheduler: Scheduler, manager: FakeManager
) -> None:
    manager.change(jobs=[waiting()])
    assert scheduler.missing() == "the manager's snapshot"
    assert await step(scheduler, manager) == RETRY_S
    assert scheduler.missing() is None
    assert await step(scheduler, manager) == RETRY_S
    (plan,) = proposals(manager)
    assert (plan.job, plan.attempt, plan.version) == ("q", 1, 2)
    assert set(plan.assignments.values()) == {"a", "b"}
    assert [flow.bandwidth for flow in plan.flows] == [50 * MBIT]
    assert plan.solver == get_solver(DEFAULT).name != DEFAULT
    assert plan.considered["bound"] >= plan.metrics["composite"]
    assert set(plan.considered) == {"bound", "decision_ms", "fallback", "policy", "refused", "seed", "time_limit_s"}


async def test_the_version_is_that_of_the_offer_though_the_state_moves_on_meanwhile(
    bus: MemoryBus, manager: FakeManager, clock: Clock
) -> None:
    class Slow:
        """Decides only after the scheduler has read the state again, as a dry run makes it do."""

        name, summary = "slow", ""

        def __init__(self) -> None:
            self.loop = asyncio.get_running_loop()

        def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
            manager.change(nodes=[node("c", 4)])
            asyncio.run_coroutine_threadsafe(scheduler.reader.refresh(), self.loop).result(10)
            return get_solver(DEFAULT).solve(problem, seed=seed)

    scheduler = Scheduler(bus, Slow(), RESYNC_S, clock)
    manager.change(jobs=[waiting()])
    await step(scheduler, manager)
    assert scheduler.reader.view.version == 3
    assert [plan.version for plan in proposals(manager)] == [2]


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
    bus: MemoryBus, manager: FakeManager, limit_s: float | None, crowd: int, each_s: float | None
) -> None:
    solver = Timed()
    scheduler = Scheduler(bus, solver, RESYNC_S, time_limit_s=limit_s)
    manager.change(jobs=[waiting("alone", cpu=10)])
    await step(scheduler, manager)
    manager.change(jobs=[job(f"q{i}", tasks=1, task={"cpu": 10, "memory": 1}) for i in range(crowd)])
    await step(scheduler, manager)
    assert solver.limits == [limit_s, *[each_s] * crowd], "the first waits for its answer, not for a place"
    assert [plan.considered["time_limit_s"] for plan in proposals(manager)] == solver.limits


async def test_it_is_not_ready_and_decides_nothing_while_the_solver_is_compiled(
    bus: MemoryBus, manager: FakeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, compiled = threading.Event(), threading.Event()

    def compile_slowly(_: object) -> None:
        begun.set()
        compiled.wait()

    monkeypatch.setattr("ces_scheduler.service.warm_up", compile_slowly)
    manager.change(jobs=[waiting()])
    scheduler = Scheduler(bus, get_solver(DEFAULT), RESYNC_S)
    task = asyncio.create_task(scheduler.run())
    try:
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        assert scheduler.missing() == "the solver is being compiled"
        with pytest.raises(BusError):
            await ask(bus)
        assert manager.asked == 0
        compiled.set()
        await manager.until(lambda: bool(proposals(manager)))
        assert scheduler.missing() is None
    finally:
        compiled.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await scheduler.reader.close()


async def test_a_solver_that_cannot_be_warmed_up_keeps_no_job_from_being_tried(
    bus: MemoryBus, manager: FakeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("ces_scheduler.service.warm_up", fails)
    manager.change(jobs=[waiting()])
    scheduler = Scheduler(bus, get_solver(DEFAULT), RESYNC_S)
    task = asyncio.create_task(scheduler.run())
    try:
        await manager.until(lambda: bool(proposals(manager)))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await scheduler.reader.close()


async def test_what_is_proposed_counts_as_used(scheduler: Scheduler, manager: FakeManager) -> None:
    manager.change(jobs=[waiting("q1"), waiting("q2")])
    await step(scheduler, manager)
    assert [plan.job for plan in proposals(manager)] == ["q1"]
    assert [refused.job for refused in manager.told("plan.refused")] == ["q2"]
    manager.change(jobs=[waiting("q3")])
    await step(scheduler, manager)
    assert [plan.job for plan in proposals(manager)] == ["q1"], "the first is still without an answer"


async def test_urgent_jobs_come_first(scheduler: Scheduler, manager: FakeManager) -> None:
    manager.change(jobs=[waiting("q1"), waiting("q2", priority=80)])
    await step(scheduler, manager)
    assert [plan.job for plan in proposals(manager)] == ["q2"]


async def test_a_small_job_goes_where_a_large_one_has_no_place(scheduler: Scheduler, manager: FakeManager) -> None:
    manager.change(jobs=[waiting("large", 9000, priority=80), waiting("small", 10)])
    await step(scheduler, manager)
    assert [plan.job for plan in proposals(manager)] == ["small"]
    (refused,) = manager.told("plan.refused")
    assert (refused.job, refused.reason.resource, refused.reason.forever) == ("large", "cpu", True)


async def test_a_commit_ends_the_wait(scheduler: Scheduler, manager: FakeManager) -> None:
    manager.change(jobs=[waiting()])
    await step(scheduler, manager)
    manager.change(jobs=[job("q", ["a", "b"], state="planned", task={"cpu": 3000})])
    assert await step(scheduler, manager) == RESYNC_S
    assert len(proposals(manager)) == 1


async def test_a_refusal_is_said_once_per_reason(scheduler: Scheduler, manager: FakeManager) -> None:
    manager.change(jobs=[waiting(cpu=9000)])
    for _ in range(3):
        await step(scheduler, manager)
        manager.change()
    assert len(manager.told("plan.refused")) == 1
    manager.change(nodes=[node("a", 1, cpu=5000)])
    await step(scheduler, manager)
    first, second = manager.told("plan.refused")
    assert first.reason != second.reason


async def test_a_refusal_that_could_not_be_said_is_said_later(
    scheduler: Scheduler, manager: FakeManager, bus: MemoryBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> bool:
        raise BusUnavailable("away")

    manager.change(jobs=[waiting(cpu=9000)])
    with monkeypatch.context() as patch:
        patch.setattr(bus, "publish_fact", away)
        assert await step(scheduler, manager) == RETRY_S
    await step(scheduler, manager)
    assert len(manager.told("plan.refused")) == 1


async def test_a_job_without_a_place_is_not_tried_until_something_is_freed(
    scheduler: Scheduler, manager: FakeManager
) -> None:
    solved: list[str] = []
    solver = get_solver(DEFAULT)

    class Counting:
        name, summary = "counting", ""

        def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
            solved.append(problem.name)
            return solver.solve(problem, seed=seed)

    scheduler._solver = Counting()
    manager.change(jobs=[waiting(), job("r", ["a"], task={"cpu": 3000})])
    await step(scheduler, manager)
    manager.change(jobs=[job("t", ["b"], task={"cpu": 100})])
    await step(scheduler, manager)
    assert solved == ["q"]
    manager.change(jobs=[job("r", ["a"], state="succeeded", allocation={"state": "succeeded"})])
    await step(scheduler, manager)
    assert solved == ["q", "q"]
    assert [plan.job for plan in proposals(manager)] == ["q"]


async def test_a_rejected_plan_is_tried_again(scheduler: Scheduler, manager: FakeManager) -> None:
    manager.change(jobs=[waiting()])
    await step(scheduler, manager)
    (first,) = proposals(manager)
    await reject(manager, first.plan)
    await step(scheduler, manager)
    assert len(proposals(manager)) == 2
    assert proposals(manager)[1].plan != first.plan


async def test_a_job_whose_plans_are_rejected_again_and_again_is_left_alone_longer_and_longer(
    scheduler: Scheduler, manager: FakeManager, clock: Clock
) -> None:
    manager.change(jobs=[waiting()])
    waits = []
    for _ in range(5):
        before, start = len(proposals(manager)), clock.now
        while len(proposals(manager)) == before:
            wait_s = await step(scheduler, manager)
            if len(proposals(manager)) == before:
                assert wait_s == RETRY_S
                clock.now += 0.5
        waits.append(clock.now - start)
        await reject(manager, proposals(manager)[-1].plan)
    assert waits[:2] == [0, 0]
    assert waits[2] < waits[3] < waits[4]
    assert backoff_s(1000) == 30
    manager.change(jobs=[waiting(attempt=2)])
    await step(scheduler, manager)
    assert proposals(manager)[-1].attempt == 2, "another attempt is another matter"


async def test_the_rejection_of_another_plan_says_nothing_of_ours(scheduler: Scheduler, manager: FakeManager) -> None:
    manager.change(jobs=[waiting()])
    await step(scheduler, manager)
    await reject(manager, "another-schedulers-plan")
    await step(scheduler, manager)
    assert len(proposals(manager)) == 1


async def test_a_proposal_without_an_answer_counts_as_lost_after_a_while(
    scheduler: Scheduler, manager: FakeManager, clock: Clock
) -> None:
    manager.change(jobs=[waiting()])
    await step(scheduler, manager)
    clock.now += IN_FLIGHT_S - 0.1
    await step(scheduler, manager)
    assert len(proposals(manager)) == 1
    clock.now += 0.2
    await step(scheduler, manager)
    assert len(proposals(manager)) == 2


async def test_rubbish_on_the_stream_becomes_a_dead_letter(
    bus: MemoryBus, scheduler: Scheduler, manager: FakeManager
) -> None:
    dead: list[bytes] = []

    async def bury(delivery: Any) -> None:
        dead.append(delivery.data)

    await bus.consume("undertaker", [subjects.dead_letter("scheduler")], bury)
    await bus.publish_fact(subjects.event("plan", "rejected", "x"), b"rubbish", message_id="1")
    await manager.settled()
    assert dead == [b"rubbish"]


async def test_without_a_manager_it_tries_again_soon(bus: MemoryBus) -> None:
    assert await Scheduler(bus, get_solver(DEFAULT), RESYNC_S).step() == RETRY_S


async def test_without_nodes_a_job_waits_for_the_first(bus: MemoryBus, clock: Clock) -> None:
    manager = FakeManager(bus)
    await manager.open()
    manager.change(jobs=[waiting()])
    scheduler = Scheduler(bus, get_solver(DEFAULT), RESYNC_S, clock)
    await step(scheduler, manager)
    await step(scheduler, manager)
    assert [refused.reason.code for refused in manager.told("plan.refused")] == ["no-nodes"]
    manager.change(nodes=NODES, links=LINKS)
    await step(scheduler, manager)
    assert len(proposals(manager)) == 1


@pytest.fixture
async def running(bus: MemoryBus, manager: FakeManager, clock: Clock) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(bus, get_solver(DEFAULT), 3600, clock)
    task = asyncio.create_task(scheduler.run())
    await manager.until(lambda: manager.asked > 0)
    yield scheduler
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await scheduler.reader.close()


async def test_two_hints_lead_to_one_proposal(running: Scheduler, manager: FakeManager) -> None:
    manager.change(jobs=[waiting()])
    for _ in range(2):
        await manager.tell("job", "queued", "q", JobChanged(job="q", name="q", attempt=1, state=JobState.QUEUED))
    await manager.until(lambda: bool(proposals(manager)))
    asked = manager.asked
    await manager.tell("job", "queued", "q", JobChanged(job="q", name="q", attempt=1, state=JobState.QUEUED))
    await manager.until(lambda: manager.asked > asked)
    await manager.settled()
    assert len(proposals(manager)) == 1


async def ask(bus: MemoryBus, **changes: Any) -> PlanAnswer:
    file = JobFile.model_validate(
        {
            "name": "what-if",
            "tasks": [{"name": "w", "replicas": 2, "command": ["x"], "resources": {"cpu": "3", "memory": "1Gi"}}],
            "flows": {"topology": "ring", "bandwidth": {"min": "10Mbit", "max": "50Mbit"}},
            **changes,
        }
    )
    raw = await bus.request(subjects.rpc("scheduler", "plan"), PlanQuery(job=file).encode(), timeout_s=10)
    return PlanAnswer.model_validate_json(raw)


async def test_a_dry_run_says_what_would_happen_and_does_nothing(
    running: Scheduler, bus: MemoryBus, manager: FakeManager
) -> None:
    answer = await ask(bus)
    assert answer.feasible
    assert (answer.version, answer.solver) == (1, get_solver(DEFAULT).name)
    assert set(answer.assignments.values()) == {"a", "b"}
    assert {flow.bandwidth for flow in answer.flows} == {50 * MBIT}
    assert 0 < answer.metrics["composite"] <= (answer.bound or 0)
    await manager.settled()
    assert manager.facts == []


async def test_a_dry_run_explains_what_has_no_place(running: Scheduler, bus: MemoryBus, manager: FakeManager) -> None:
    manager.change(nodes=[node("b", 3, cordoned=True)])
    answer = await ask(bus)
    assert not answer.feasible
    assert answer.reason is not None
    assert answer.version == 2
    assert answer.refused["w-0"]["b"] == "cordoned"


async def test_a_senseless_dry_run_is_refused(running: Scheduler, bus: MemoryBus) -> None:
    with pytest.raises(RemoteError):
        await bus.request(subjects.rpc("scheduler", "plan"), b'{"job": {"name": "x"}}')
