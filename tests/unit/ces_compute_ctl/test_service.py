"""The compute controller over a bus in memory."""

import asyncio

import pytest
from bus_manager import FakeManager
from cluster_state import job, node
from memory_bus import MemoryBroker, MemoryBus

from ces_common import sign_of_life
from ces_common.bus.port import BusUnavailable, Message
from ces_common.messages.desired import DesiredCompute
from ces_common.messages.events import JobChanged
from ces_common.messages.reports import Alive
from ces_common.states import JobState
from ces_compute_ctl.service import ComputeController


@pytest.fixture
def manager(manager: FakeManager) -> FakeManager:
    manager.change(nodes=[node("a"), node("b")])
    return manager


def document(broker: MemoryBroker, name: str) -> DesiredCompute:
    return DesiredCompute.model_validate_json(broker.bucket[f"{name}.compute"])


async def test_workers_come_and_go_with_the_state(broker: MemoryBroker, bus: MemoryBus, manager: FakeManager) -> None:
    controller = ComputeController(bus, 30)
    assert await controller.step()
    assert document(broker, "a").workers == []
    manager.change(jobs=[job("j", ["a"], state="starting", allocation={"state": "pending"})])
    assert await controller.step()
    assert [worker.key for worker in document(broker, "a").workers] == ["j-w-0.1"]
    assert (document(broker, "a").generation, document(broker, "b").generation) == (2, 1)
    manager.change(jobs=[job("j", ["a"], state="cancelled", allocation={"state": "stopping", "stopping_since": 3})])
    assert await controller.step()
    assert (document(broker, "a").workers, document(broker, "a").generation) == ([], 3)


async def test_a_stop_that_changes_no_document_still_renews_its_generation(
    broker: MemoryBroker, bus: MemoryBus, manager: FakeManager
) -> None:
    """A job may be stopped before any document named its workers; its agents must confirm that all the same."""
    controller = ComputeController(bus, 30)
    await controller.step()
    manager.change(jobs=[job("j", ["a"], state="cancelled", allocation={"state": "stopping", "stopping_since": 2})])
    await controller.step()
    assert (document(broker, "a").generation, document(broker, "b").generation) == (2, 1)


async def test_it_follows_hints_and_says_when_it_is_ready(
    broker: MemoryBroker, bus: MemoryBus, manager: FakeManager
) -> None:
    controller = ComputeController(bus, 3600)
    assert controller.missing() == "the manager's snapshot"
    running = asyncio.create_task(controller.run())
    try:
        await manager.until(lambda: manager.asked == 1)
        manager.change(jobs=[job("j", ["b"])])
        changed = JobChanged(job="j", name="j", attempt=1, state=JobState.RUNNING)
        await manager.tell("job", "running", "j", changed)
        await manager.until(lambda: manager.asked == 2)
        await manager.settled()
        assert [worker.job for worker in document(broker, "b").workers] == ["j"]
        assert controller.missing() is None
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await controller.reader.close()


async def test_without_a_manager_it_tries_again(bus: MemoryBus) -> None:
    assert not await ComputeController(bus, 30).step()


async def test_it_gives_signs_of_life_while_its_steps_go_through(
    bus: MemoryBus, manager: FakeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_of_life, "MOST_OFTEN_S", 0.0)
    signs: list[bytes] = []

    async def heard(message: Message) -> None:
        signs.append(message.data)

    await bus.subscribe(sign_of_life.SUBJECT, heard)
    controller = ComputeController(bus, 30)
    assert await controller.step()
    await manager.settled()
    assert [Alive.model_validate_json(sign).service for sign in signs] == ["compute-ctl"]

    async def refused(*_: object, **__: object) -> None:
        raise BusUnavailable("no stream")

    monkeypatch.setattr(controller._store, "put", refused)
    assert not await controller.step()
    await manager.settled()
    assert len(signs) == 1
