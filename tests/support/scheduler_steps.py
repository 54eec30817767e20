"""The scheduler over a bus in memory, step by step: two nodes and the way between them, jobs that fill both."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from bus_manager import FakeManager
from cluster_state import MBIT, job, node, wire
from queue_looks import SOON, placing

from ces_common import subjects
from ces_common.bus.port import Bus
from ces_common.jobfile import JobFile
from ces_common.messages.plans import PlanRejected
from ces_common.messages.queries import PlanAnswer, PlanQuery
from ces_common.messages.records import JobRecord
from ces_scheduler.cycle_run import Placing
from ces_scheduler.service import Scheduler

RESYNC_S = 30.0
NODES = [node("a", 1), node("s", 2, cpu=0, memory=0), node("b", 3)]
LINKS = [*wire("a", "s"), *wire("s", "b")]


class Clock:
    """Both clocks of the scheduler: the steady one, called; the time of day, as ``time``."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def time(self) -> datetime:
        return SOON + timedelta(seconds=self.now - 100.0)


def scheduler_on(
    bus: Bus, clock: Clock, how: Placing | None = None, resync_s: float = RESYNC_S, **more: Any
) -> Scheduler:
    return Scheduler(bus, how or placing(), resync_s, clock, now=clock.time, **more)


def waiting(name: str = "q", cpu: int = 3000, **fields: Any) -> JobRecord:
    """Two tasks, each of which fills a node for the most part."""
    return job(name, tasks=2, asked=[(0, 1, 10 * MBIT, 50 * MBIT)], task={"cpu": cpu}, **fields)


def proposals(manager: FakeManager) -> list[Any]:
    return manager.told("plan.proposed")


def refusals(manager: FakeManager) -> list[Any]:
    return manager.told("plan.refused")


async def step(scheduler: Scheduler, manager: FakeManager) -> float:
    wait_s = await scheduler.step()
    await manager.settled()
    return wait_s


async def reject(manager: FakeManager, plan: str, name: str = "q", attempt: int = 1) -> None:
    await manager.tell("plan", "rejected", plan, PlanRejected(plan=plan, job=name, attempt=attempt, reason="no"))
    await manager.settled()


async def ask(bus: Bus, **changes: Any) -> PlanAnswer:
    """A dry run of a job of two tasks that fill a node each for the most part."""
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
