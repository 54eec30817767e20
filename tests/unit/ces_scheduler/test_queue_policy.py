"""Which policy decides over the queue, and what is said where one cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest
from bus_manager import FakeManager
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import Clock, proposals, refusals, scheduler_on, step, waiting

from ces_common.service import BadSetup
from ces_core.queue.cycle import cycle
from ces_core.queue.parameters import Parameters
from ces_core.queue.policies import CES_MULTI, GROUP, get_queue_policy, queue_policy_names
from ces_core.queue.reservations import Solve
from ces_core.queue.state import Decisions, State
from ces_scheduler.__main__ import SchedulerSettings, run
from ces_scheduler.service import EVENTS

Offered = Callable[[str, str], None]


def nobody_starts(state: State, parameters: Parameters, solve: Solve, aware: Solve | None = None) -> Decisions:
    return Decisions(())


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Offered:
    """Have an installed package add a policy."""

    def add(name: str, value: str) -> None:
        points = [EntryPoint(name, value, GROUP)]
        monkeypatch.setattr("ces_core.queue.policies.entry_points", lambda group: points if group == GROUP else [])

    return add


def test_ces_multi_is_what_there_is_without_a_setting(offered: Offered) -> None:
    offered(CES_MULTI, "json:loads")  # replaces nothing
    assert get_queue_policy(SchedulerSettings().queue_policy) is cycle
    assert placing().policy is cycle


def test_another_package_adds_one(offered: Offered) -> None:
    offered("other", "ces_core.queue.cycle:cycle")
    assert queue_policy_names() == [CES_MULTI, "other"]
    assert get_queue_policy("other") is cycle


@pytest.mark.parametrize(
    ("asked", "value", "said"),
    [
        ("oracle", "ces_core.queue.cycle:cycle", "use one of ces-multi, other, or install"),
        ("other", "no_such_package:cycle", "cannot be loaded from no_such_package:cycle (ModuleNotFoundError"),
        ("other", "ces_core.queue.cycle:UNTRIED.freed", "is no function"),
        ("other", "ces_core.queue.state:State", "is no function"),
    ],
)
async def test_what_cannot_decide_is_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, offered: Offered, asked: str, value: str, said: str
) -> None:
    offered("other", value)
    monkeypatch.setenv("CES_QUEUE_POLICY", asked)
    with pytest.raises(BadSetup) as caught:
        await run(SchedulerSettings(), asyncio.Event())
    assert str(caught.value).startswith("CES_QUEUE_POLICY: ")
    assert said in str(caught.value)
    assert CES_MULTI in str(caught.value)


async def test_the_policy_of_the_setting_decides(wired: FakeManager, bus: MemoryBus, clock: Clock) -> None:
    scheduler = scheduler_on(bus, clock, placing(policy=nobody_starts))
    await scheduler.reader.start(EVENTS, scheduler._event)
    wired.change(jobs=[waiting()])
    await step(scheduler, wired)
    assert proposals(wired) == []
    assert refusals(wired) == []
    await scheduler.reader.close()
