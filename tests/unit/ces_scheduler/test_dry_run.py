"""What would happen to a job that nobody has submitted."""

from __future__ import annotations

import pytest
from bus_manager import FakeManager
from cluster_state import MBIT, node
from memory_bus import MemoryBus
from scheduler_steps import ask

from ces_common import subjects
from ces_common.bus.port import RemoteError
from ces_core.registry import DEFAULT, get_solver
from ces_scheduler.service import Scheduler


async def test_a_dry_run_says_what_would_happen_and_does_nothing(
    running: Scheduler, bus: MemoryBus, wired: FakeManager
) -> None:
    answer = await ask(bus)
    assert answer.feasible
    assert (answer.version, answer.solver) == (1, get_solver(DEFAULT).name)
    assert set(answer.assignments.values()) == {"a", "b"}
    assert {flow.rate for flow in answer.flows} == {50 * MBIT}
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


async def test_a_dry_run_names_the_label_that_no_node_has(
    running: Scheduler, bus: MemoryBus, wired: FakeManager
) -> None:
    wired.change(nodes=[node("b", 3, labels={"site": "roof"})])
    group = {"name": "w", "command": ["x"], "constraints": {"labels": {"site": "moon"}}}
    answer = await ask(bus, tasks=[group], flows={})
    assert not answer.feasible
    assert answer.reason is not None
    assert answer.reason.text == "task w-0 is allowed on no node: no node has label site=moon (roof exists)"
    assert answer.refused["w-0"]["b"] == "label site is roof, not moon"


MALLEABLE = {"name": "w", "command": ["x"], "resources": {"cpu": "1", "memory": "64Mi"}}


@pytest.mark.parametrize(("workers", "size"), [({"min": 1, "max": 8}, 8), ({"min": 2, "max": 3}, 3)])
async def test_a_malleable_job_would_start_as_large_as_there_is_room(
    running: Scheduler, bus: MemoryBus, workers: dict[str, int], size: int
) -> None:
    answer = await ask(bus, tasks=[MALLEABLE], elastic={"group": "w", "workers": workers})
    assert (answer.feasible, answer.size) == (True, size)
    assert sorted(answer.assignments) == sorted(f"w-{i}" for i in range(size))
    assert len(answer.flows) == size


async def test_a_malleable_job_waits_for_its_smallest_size(
    running: Scheduler, bus: MemoryBus, wired: FakeManager
) -> None:
    wired.change(nodes=[node("b", 3, cordoned=True)])
    answer = await ask(bus, tasks=[MALLEABLE], elastic={"group": "w", "sizes": [5, 8]})
    assert (answer.feasible, answer.size) == (False, None)
    assert set(answer.refused) == {f"w-{i}" for i in range(5)}


async def test_a_job_that_is_not_malleable_has_no_size(running: Scheduler, bus: MemoryBus) -> None:
    assert (await ask(bus)).size is None


async def test_a_senseless_dry_run_is_refused(running: Scheduler, bus: MemoryBus) -> None:
    with pytest.raises(RemoteError):
        await bus.request(subjects.rpc("scheduler", "plan"), b'{"job": {"name": "x"}}')
