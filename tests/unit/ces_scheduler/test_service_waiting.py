"""What is said of jobs that wait, when it is said again, and when nobody is tried."""

from __future__ import annotations

import pytest
from bus_manager import FakeManager
from cluster_state import MBIT, job, node
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import Clock, proposals, refusals, scheduler_on, step, waiting

from ces_common.bus.port import BusUnavailable
from ces_common.messages.events import Reason
from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.registry import DEFAULT, get_solver
from ces_scheduler.service import RETRY_S, Scheduler
from ces_scheduler.status_reports import StatusReports


async def test_a_refusal_is_said_once_per_reason(scheduler: Scheduler, wired: FakeManager) -> None:
    wired.change(jobs=[waiting(cpu=9000)])
    for _ in range(3):
        await step(scheduler, wired)
        wired.change()
    assert len(refusals(wired)) == 1
    wired.change(nodes=[node("a", 1, cpu=5000)])
    await step(scheduler, wired)
    first, second = refusals(wired)
    assert first.reason != second.reason


async def test_a_refusal_that_could_not_be_said_is_said_later(
    scheduler: Scheduler, wired: FakeManager, bus: MemoryBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> bool:
        raise BusUnavailable("away")

    wired.change(jobs=[waiting(cpu=9000)])
    with monkeypatch.context() as patch:
        patch.setattr(bus, "publish_fact", away)
        assert await step(scheduler, wired) == RETRY_S
    await step(scheduler, wired)
    assert len(refusals(wired)) == 1


async def test_a_job_without_a_place_is_not_tried_until_something_is_freed(
    bus: MemoryBus, clock: Clock, wired: FakeManager
) -> None:
    solved: list[str] = []
    solver = get_solver(DEFAULT)

    class Counting:
        name, summary = "counting", ""

        def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
            solved.append(problem.name)
            return solver.solve(problem, seed=seed)

    scheduler = scheduler_on(bus, clock, placing(Counting()))
    full = [(0, 1, 90 * MBIT, ["a", "s", "b"]), (1, 0, 90 * MBIT, ["b", "s", "a"])]
    wired.change(jobs=[waiting(cpu=2500), job("r", ["a", "b"], full)])
    await step(scheduler, wired)
    wired.change(jobs=[job("t", ["b"], task={"cpu": 100})])
    await step(scheduler, wired)
    assert solved == ["q"]
    wired.change(jobs=[job("r", ["a", "b"], full, state="succeeded", allocation={"state": "succeeded"})])
    await step(scheduler, wired)
    assert solved == ["q", "q"]
    assert [plan.job for plan in proposals(wired)] == ["q"]


async def test_a_report_of_a_job_that_has_just_left_is_forgotten(bus: MemoryBus, clock: Clock) -> None:
    """A dry run looks at the state while a cycle goes on, and the cycle's reports come after that look."""
    reports = StatusReports(bus, "scheduler", clock.time)
    gone, other = waiting("gone"), waiting("other")
    why = Reason(code="packing", text="")
    reports.settle({"gone": gone}, ["gone"])
    reports.settle({"other": other}, ["gone", "other"])
    assert await reports.report(gone, why, None, 1)
    reports.settle({"other": other}, [])
    assert await reports.report(gone, why, None, 2), "it waits again"
    assert not await reports.report(gone, why, None, 2)
