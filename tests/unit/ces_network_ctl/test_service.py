"""The network controller over a bus in memory: documents for the agents, word to the manager."""

import asyncio

import pytest
from bus_manager import FakeManager
from cluster_state import MBIT, job, node, wire
from memory_bus import MemoryBroker, MemoryBus

from ces_common import sign_of_life, subjects
from ces_common.bus.port import BusUnavailable, Message
from ces_common.messages.desired import DesiredNetwork
from ces_common.messages.records import JobRecord
from ces_common.messages.reports import Alive, Applied
from ces_common.states import JobState
from ces_network_ctl.announcements import BURST, LARGEST, PREPARING_S, ready_jobs
from ces_network_ctl.service import LINGER_S, RETRY_S, NetworkController

NODES = [node("a", 1), node("s", 2, cpu=0, memory=0), node("b", 3)]
LINKS = [*wire("a", "s"), *wire("s", "b")]
RESYNC_S = 30.0


def placed(state: JobState = JobState.PLANNED, **fields: object) -> JobRecord:
    return job("j", ["a", "b"], [(0, 1, MBIT, ["a", "s", "b"])], state=state, **fields)


@pytest.fixture
def manager(manager: FakeManager) -> FakeManager:
    manager.change(nodes=NODES, links=LINKS)
    return manager


@pytest.fixture
async def controller(bus: MemoryBus) -> NetworkController:
    controller = NetworkController(bus, RESYNC_S)
    await controller.announcements.listen()
    return controller


async def applied(bus: MemoryBus, manager: FakeManager, *nodes: str, jobs: tuple[str, ...] = ("j.1",)) -> None:
    for name in nodes:
        report = Applied(node=name, generation=1, jobs=list(jobs))
        await bus.publish(subjects.report(name, "applied"), report.encode())
    await manager.settled()


def document(broker: MemoryBroker, name: str) -> DesiredNetwork:
    return DesiredNetwork.model_validate_json(broker.bucket[f"{name}.network"])


async def test_documents_follow_the_state(
    broker: MemoryBroker, manager: FakeManager, controller: NetworkController
) -> None:
    assert controller.missing() == "the manager's snapshot"
    assert await controller.step() == RESYNC_S
    assert controller.missing() is None
    assert {document(broker, each.name).generation for each in NODES} == {1}
    manager.change(jobs=[placed()])
    assert await controller.step() == PREPARING_S
    assert all(document(broker, each.name).jobs == {"j.1"} for each in NODES)
    assert document(broker, "s").generation == 2


async def test_what_a_job_leaves_behind_goes_with_what_is_new_and_soon_in_any_case(
    bus: MemoryBus, broker: MemoryBroker, manager: FakeManager
) -> None:
    now = 0.0
    controller = NetworkController(bus, RESYNC_S, lambda: now)
    other = job("k", ["a"], state=JobState.RUNNING)
    manager.change(jobs=[placed(JobState.RUNNING)])
    assert await controller.step() == RESYNC_S
    manager.change(jobs=[placed(JobState.CANCELLED, allocation={"state": "stopped"}), other])
    assert await controller.step() == LINGER_S
    assert document(broker, "a").jobs == {"k.1"}, "its node has something new, so that all is up to date"
    assert document(broker, "s").jobs == document(broker, "b").jobs == {"j.1"}
    now = LINGER_S / 2
    assert await controller.step() == LINGER_S / 2
    now = LINGER_S
    assert await controller.step() == RESYNC_S
    assert document(broker, "s").jobs == document(broker, "b").jobs == set()


async def test_ready_is_said_once_every_node_has_its_share(
    bus: MemoryBus, manager: FakeManager, controller: NetworkController
) -> None:
    manager.change(jobs=[placed()])
    await controller.step()
    await applied(bus, manager, "a", "b")
    await controller.step()
    await manager.settled()
    assert manager.told("network.ready") == [], "the switch in between has not applied it yet"
    await applied(bus, manager, "s")
    await controller.step()
    await manager.until(lambda: bool(manager.told("network.ready")))
    (ready,) = {(each.job, each.attempt) for each in manager.told("network.ready")}
    assert ready == ("j", 1)


async def test_reports_alone_make_it_ready_without_another_look_at_the_state(
    bus: MemoryBus, manager: FakeManager, controller: NetworkController
) -> None:
    manager.change(jobs=[placed()])
    await controller.step()
    announcing = asyncio.create_task(controller.announcements.run())
    await applied(bus, manager, "a", "b", "s")
    await manager.until(lambda: bool(manager.told("network.ready")))
    announcing.cancel()


async def test_that_it_is_prepared_is_said_only_of_a_network_that_takes_long(
    monkeypatch: pytest.MonkeyPatch, manager: FakeManager, controller: NetworkController
) -> None:
    manager.change(jobs=[placed()])
    await controller.step()
    await manager.settled()
    assert manager.told("network.preparing") == []
    monkeypatch.setattr("ces_network_ctl.announcements.PREPARING_S", 0.0)
    await controller.step()
    await manager.until(lambda: bool(manager.told("network.preparing")))


async def test_what_was_said_of_a_job_that_waits_is_not_repeated_within_the_period(
    monkeypatch: pytest.MonkeyPatch, manager: FakeManager, controller: NetworkController
) -> None:
    monkeypatch.setattr("ces_network_ctl.announcements.REPEAT_S", 10**9)
    monkeypatch.setattr("ces_network_ctl.announcements.PREPARING_S", 0.0)
    manager.change(jobs=[placed()])
    for _ in range(3):
        await controller.step()
    await manager.settled()
    assert len(manager.told("network.preparing")) == 1


async def test_only_an_agents_own_report_counts(
    bus: MemoryBus, manager: FakeManager, controller: NetworkController
) -> None:
    manager.change(jobs=[placed()])
    await controller.step()
    await applied(bus, manager, "a", "b")
    forged = Applied(node="s", generation=1, jobs=["j.1"])
    await bus.publish(subjects.report("a", "applied"), forged.encode())
    await bus.publish(subjects.report("s", "applied"), b"rubbish")
    await manager.settled()
    await controller.step()
    await manager.settled()
    assert manager.told("network.ready") == []


async def test_reports_without_measure_cost_no_other_node_its_hearing(
    bus: MemoryBus, manager: FakeManager, controller: NetworkController, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []
    parse = Applied.model_validate_json
    monkeypatch.setattr(Applied, "model_validate_json", lambda data: (read.append(data), parse(data))[1])
    manager.change(jobs=[placed()])
    await controller.step()
    for _ in range(2 * BURST):
        await bus.publish(subjects.report("rogue", "applied"), b"{}")
    await bus.publish(subjects.report("other", "applied"), b" " * (LARGEST + 1))
    await applied(bus, manager, "a", "s", "b")
    await controller.step()
    await manager.settled()
    assert len(manager.told("network.ready")) == 1
    assert max(map(len, read)) <= LARGEST
    assert BURST <= read.count(b"{}") < 2 * BURST


async def test_an_agent_that_lost_its_share_takes_its_word_back(
    bus: MemoryBus, manager: FakeManager, controller: NetworkController
) -> None:
    manager.change(jobs=[placed()])
    await applied(bus, manager, "a", "s", "b")
    await applied(bus, manager, "s", jobs=())
    await controller.step()
    await manager.settled()
    assert manager.told("network.ready") == []


async def test_a_network_that_reserves_nothing_promises_nothing(
    broker: MemoryBroker, bus: MemoryBus, manager: FakeManager, controller: NetworkController
) -> None:
    manager.change(jobs=[placed()])
    await controller.step()
    assert {flow.rate for flow in document(broker, "a").classes if flow.kind == "data"} == {MBIT}
    await NetworkController(bus, RESYNC_S, reserve=False).step()
    plain = document(broker, "a")
    assert {flow.rate for flow in plain.classes} == {0}
    assert {flow.ceil for flow in plain.classes} == {LINKS[0].bandwidth}


async def test_without_a_manager_it_tries_again_soon(bus: MemoryBus) -> None:
    controller = NetworkController(bus, RESYNC_S)
    assert await controller.step() == RETRY_S
    assert controller.missing() == "the manager's snapshot"


async def test_what_could_not_be_written_is_written_next_time(
    monkeypatch: pytest.MonkeyPatch,
    broker: MemoryBroker,
    bus: MemoryBus,
    manager: FakeManager,
    controller: NetworkController,
) -> None:
    put, failing = bus.kv_put, ["b.network"]

    async def sometimes(key: str, data: bytes, *, after: int | None = None) -> int:
        if key in failing:
            raise BusUnavailable("away")
        return await put(key, data, after=after)

    monkeypatch.setattr(bus, "kv_put", sometimes)
    assert await controller.step() == RETRY_S
    failing.clear()
    assert await controller.step() == RESYNC_S
    assert set(broker.bucket) == {"a.network", "s.network", "b.network"}


@pytest.mark.parametrize(
    ("record", "ready"),
    [
        (placed(), True),
        (placed(JobState.PREPARING), True),
        (placed(JobState.STARTING), False),
        (placed(attempt=2), False),
        (job("j", state="planned"), False),
    ],
    ids=["planned", "preparing", "said already", "another attempt", "no allocations"],
)
def test_which_jobs_are_ready(record: JobRecord, ready: bool) -> None:
    reports = {name: Applied(node=name, generation=1, jobs=["j.1"]) for name in "asb"}
    assert ready_jobs([record], reports, lambda job: {"s"}) == ([record] if ready else [])
    assert ready_jobs([record], reports, lambda job: {"x"}) == [], "its best-effort traffic has no way yet"
    assert ready_jobs([record], reports, lambda job: None) == [], "nobody has planned its network yet"


async def test_it_gives_signs_of_life_while_its_steps_go_through(
    bus: MemoryBus, manager: FakeManager, controller: NetworkController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_of_life, "MOST_OFTEN_S", 0.0)
    signs: list[bytes] = []

    async def heard(message: Message) -> None:
        signs.append(message.data)

    await bus.subscribe(sign_of_life.SUBJECT, heard)
    await controller.step()
    await manager.settled()
    assert [Alive.model_validate_json(sign).service for sign in signs] == ["network-ctl"]

    async def refused(*_: object, **__: object) -> None:
        raise BusUnavailable("no stream")

    monkeypatch.setattr(controller._store, "put", refused)
    assert await controller.step() == RETRY_S
    await manager.settled()
    assert len(signs) == 1
