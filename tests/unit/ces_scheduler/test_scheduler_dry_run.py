"""What would happen to a job that nobody has submitted."""

from __future__ import annotations

import pytest
from bus_manager import FakeManager
from cluster_state import MBIT, node
from scheduler_steps import ask

from ces_common import subjects
from ces_common.bus import MemoryBus, RemoteError
from ces_core.solvers import DEFAULT, get_solver
from ces_scheduler.service import Scheduler


async def test_a_dry_run_says_what_would_happen_and_does_nothing(
    running: Scheduler, bus: MemoryBus, wired: FakeManager
) -> None:
    answer = await ask(bus)
    assert answer.feasible
    assert (answer.version, answer.solver) == (1, get_solver(DEFAULT).name)
    assert set(answer.assignments.values()) == {"a", "b"}
    assert {flow.bandwidth for flow in answer.flows} == {50 * MBIT}
    assert 0 < answer.metrics["composite"] <= (answer.bound or 0)
    await wired.settled()
    assert wired.facts == []


async def test_a_dry_run_explains_what_has_no_place(running: Scheduler, bus: MemoryBus, wired: FakeManager) -> None:
    wired.change(nodes=[node("b", 3, cordoned=True)])
    answer = await ask(bus)
    assert not answer.feasible
    assert answer.reason is not None
    assert answer.version == 2
    assert answer.refused["w-0"]["b"] == "cordoned"


async def test_a_senseless_dry_run_is_refused(running: Scheduler, bus: MemoryBus) -> None:
    with pytest.raises(RemoteError):
        await bus.request(subjects.rpc("scheduler", "plan"), b'{"job": {"name": "x"}}')
