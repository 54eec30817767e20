"""What one node says, or fails to say, costs no other node anything."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from manager_world import World, ring, sqlite_url
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.bus.port import RemoteError
from ces_common.db import ReadTx, UnitOfWork, WriteTx
from ces_common.messages.reports import OTHER_MACHINE, Heartbeat, LeaseGrant, LinkReport, Status, WorkerStatus
from ces_common.states import JobState
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.measurements import Measurements
from ces_manager.messaging.handlers import Messaging
from ces_manager.messaging.report_intake import ReportIntake
from ces_manager.nodes.expiry import Due, expire
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.nodes.hearing_clock import HearingClock
from ces_manager.nodes.node_views import CONTESTED, node_view

NODES = ["a", "b", "c"]
PATIENCE_S = 60.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(sqlite_url(tmp_path))
    world.add_nodes(*NODES)
    yield world
    world.close()


@pytest.fixture
async def bus() -> AsyncIterator[MemoryBus]:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    yield bus
    await bus.close()


@pytest.fixture
def database(world: World) -> Iterator[Database]:
    database = Database(world.uow, world.clock)
    yield database
    database.close()


async def listening(world: World, database: Database, bus: MemoryBus) -> Messaging:
    messaging = Messaging(database, bus, world.timeouts, world.failure_detector, Measurements(), Broadcast())
    await messaging.start()
    return messaging


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def beat(bus: MemoryBus, node: str) -> asyncio.Task[bytes]:
    request = bus.request(subjects.heartbeat(node), Heartbeat(node=node, boot="b").encode(), timeout_s=PATIENCE_S)
    return asyncio.create_task(request)


async def test_a_manager_that_waits_for_its_streams_hears_nodes_and_one_that_does_not_listen_yet_says_so(
    world: World, database: Database, bus: MemoryBus
) -> None:
    world.add_nodes("n1")
    messaging = Messaging(database, bus, world.timeouts, world.failure_detector, Measurements(), Broadcast())
    assert not messaging.hears()
    made = asyncio.Event()

    async def streams_made() -> None:
        await made.wait()

    starting = asyncio.create_task(messaging.start(streams_made))
    await until(messaging.hears)
    await beat(bus, "n1")
    made.set()
    await starting


async def test_while_leases_cannot_be_written_down_no_node_is_held_to_be_silent(
    world: World, database: Database, bus: MemoryBus, tmp_path: Path
) -> None:
    world.run(world.submit(ring(tasks=1, disconnect="stop")), ["a"])
    hearing = HearingClock()
    failure_detector = FailureDetector(hearing.seconds)
    messaging = await listening(world, database, bus)

    def pass_time(seconds: int) -> Due:
        for _ in range(4 * seconds):
            world.steady += 0.25
            hearing.look(world.steady, messaging.hears())
        return expire(world.uow, world.timeouts, failure_detector, world.clock)

    long = round(world.timeouts.lease_s + world.timeouts.margin_s) + 1
    assert pass_time(1) == Due()
    held = sqlite3.connect(tmp_path / "ces.db", isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    beating = [beat(bus, node) for node in NODES]
    await until(lambda: messaging._heartbeats._since is not None)
    assert pass_time(long) == Due()
    held.execute("ROLLBACK")
    held.close()
    await asyncio.gather(*beating)
    assert pass_time(1) == Due()
    assert messaging.hears()
    assert pass_time(long) == Due(silent=NODES, lost=["a"]), "now it was they who said nothing"


class Forgetting(UnitOfWork):
    """Forgets node a after the first look, as another transaction might."""

    world: World | None = None

    @contextmanager
    def read(self) -> Iterator[ReadTx]:
        with super().read() as tx:
            yield tx
        world, self.world = self.world, None
        if world is not None:
            world.forget("a")


async def test_a_node_that_is_forgotten_between_two_transactions_costs_no_other_its_lease(
    world: World, bus: MemoryBus
) -> None:
    world.wait(2 * world.timeouts.lease_s)
    world.expire()
    uow = Forgetting(world.uow.engine)
    uow.world = world
    database = Database(uow, world.clock)
    await listening(world, database, bus)
    asked = [beat(bus, node) for node in NODES]
    for answer in asked[1:]:
        assert LeaseGrant.model_validate_json(await answer).lease_s == world.timeouts.lease_s
    await asyncio.wait(asked)
    await until(lambda: {node.name: node.state for node in world.snapshot().nodes} == {"b": "ready", "c": "ready"})
    await bus.close()
    database.close()


async def test_a_flood_of_heartbeats_is_refused_and_others_are_answered(
    world: World, database: Database, bus: MemoryBus
) -> None:
    await listening(world, database, bus)
    answers = [await asyncio.gather(beat(bus, "a"), return_exceptions=True) for _ in range(40)]  # time stands still
    refused = [answer.code for (answer,) in answers if isinstance(answer, RemoteError)]
    assert set(refused) == {"too-many"}
    assert 0 < len(refused) < len(answers)
    assert LeaseGrant.model_validate_json(await beat(bus, "b")).lease_s == world.timeouts.lease_s


async def test_a_heartbeat_that_is_wrong_in_thousands_of_places_is_refused_in_a_few_words(
    world: World, database: Database, bus: MemoryBus
) -> None:
    await listening(world, database, bus)
    flows = ",".join("1" * 30000)
    with pytest.raises(RemoteError) as refused:
        await bus.request(subjects.heartbeat("a"), f'{{"node":"a","boot":"b","flows":[{flows}]}}'.encode())
    assert refused.value.code == "malformed"
    assert len(refused.value.message) < 1000
    assert LeaseGrant.model_validate_json(await beat(bus, "a")).lease_s == world.timeouts.lease_s


async def test_an_exit_code_that_no_column_holds_costs_no_other_node_its_report(
    world: World, database: Database, bus: MemoryBus
) -> None:
    jobs = {node: world.submit(ring(node, tasks=1)) for node in NODES}
    for node, job in jobs.items():
        world.run(job, [node])
    await listening(world, database, bus)
    for node, job in jobs.items():
        (allocation,) = world.job(job).allocations
        worker = WorkerStatus(allocation=allocation.id, incarnation=1, state="exited", exit_code=1)
        status = Status(node=node, generation=1, workers=[worker]).encode()
        if node == "b":
            status = status.replace(b'"exit_code":1', b'"exit_code":1' + b"0" * 30)
        await bus.publish(subjects.report(node, "status"), status)
    await until(lambda: {world.job(jobs[node]).restarts for node in ("a", "c")} == {1})
    assert world.job(jobs["b"]).state is JobState.RUNNING


async def test_a_report_that_cannot_be_stored_is_dropped_alone(
    world: World, database: Database, bus: MemoryBus
) -> None:
    stored = []

    def take(tx: WriteTx, reports: Sequence[LinkReport]) -> None:
        if any(report.node == "n7" for report in reports):
            raise OverflowError("too much for the database")
        tx.session.flush()
        stored.extend(report.node for report in reports)

    intake = ReportIntake(database, "links", LinkReport.model_validate_json, lambda tx, reports: reports, take)
    await bus.subscribe(subjects.reports("links"), intake.heard)
    for i in range(20):
        await bus.publish(subjects.report(f"n{i}", "links"), LinkReport(node=f"n{i}").encode())
    await until(lambda: {f"n{i}" for i in range(20) if i != 7} <= set(stored))
    assert "n7" not in stored


async def test_what_was_said_long_ago_is_forgotten(world: World, database: Database, bus: MemoryBus) -> None:
    intake = ReportIntake(database, "links", LinkReport.model_validate_json, lambda tx, reports: [], lambda *_: None)
    await bus.subscribe(subjects.reports("links"), intake.heard)
    for i in range(1000):
        await bus.publish(subjects.report(f"n{i}", "links"), LinkReport(node=f"n{i}").encode())
        world.steady += 1
    await until(lambda: "n999" in intake._quiet)
    world.steady += 100
    await bus.publish(subjects.report("last", "links"), LinkReport(node="last").encode())
    await until(lambda: "last" in intake._quiet)
    assert list(intake._quiet) == ["last"]


async def test_what_a_node_says_of_its_owner_is_stored(world: World, database: Database, bus: MemoryBus) -> None:
    await listening(world, database, bus)

    async def says(reclaimed: bool) -> None:
        beat = Heartbeat(node="a", boot="b", reclaimed=reclaimed)
        await bus.request(subjects.heartbeat("a"), beat.encode(), timeout_s=PATIENCE_S)
        await until(lambda: {node.name: node.reclaimed for node in world.snapshot().nodes}["a"] is reclaimed)

    for reclaimed in (True, False, True):
        await says(reclaimed)
    assert not any(node.reclaimed for node in world.snapshot().nodes if node.name != "a")


async def test_a_second_machine_is_refused_and_the_operator_is_warned(
    world: World, database: Database, bus: MemoryBus
) -> None:
    measurements = Measurements()
    messaging = Messaging(database, bus, world.timeouts, world.failure_detector, measurements, Broadcast())
    await messaging.start()

    async def ask(machine: str) -> bytes:
        beat = Heartbeat(node="a", boot="b", machine=machine, cpu=len(machine))
        return await bus.request(subjects.heartbeat("a"), beat.encode(), timeout_s=PATIENCE_S)

    def warning() -> str | None:
        with world.uow.read() as tx:
            return node_view(tx, "a", measurements).warning

    assert LeaseGrant.model_validate_json(await ask("one")).lease_s == world.timeouts.lease_s
    assert warning() is None
    with pytest.raises(RemoteError, match="passes on when that was silent for 40 s") as refused:
        await ask("second")
    assert refused.value.code == OTHER_MACHINE
    assert warning() == CONTESTED
    _, beat = measurements.beat("a") or (None, None)
    assert beat is not None
    assert beat.machine == "one", "what a refused machine measures is not the node's"
    measurements.forget_old(world.now + timedelta(minutes=2))
    assert warning() is None
