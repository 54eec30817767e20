"""What is said, and to whom, while the database does not answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import httpx
import pytest
from memory_bus import MemoryBroker, MemoryBus
from sqlalchemy.exc import DataError, OperationalError

from ces_common.bus.port import RemoteError
from ces_common.db import UnitOfWork
from ces_common.messages.records import SnapshotQuery
from ces_common.messages.reports import Heartbeat
from ces_manager.access.identities import Identities
from ces_manager.api.app import make_app
from ces_manager.api.context import Context
from ces_manager.broadcast import Broadcast
from ces_manager.clock import Clock
from ces_manager.database import HANGS_S, Database
from ces_manager.measurements import Measurements
from ces_manager.messaging.handlers import Messaging
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.timeouts import Timeouts

SECRET = "no route to db.internal:5432 for user ces"
TOKEN = "a-token-for-tests-only"


class BrokenDatabase:
    """In place of a unit of work; ``error`` is what every transaction meets."""

    def __init__(self) -> None:
        self.error: Exception | None = OperationalError("SELECT 1", {}, Exception(SECRET))

    @contextmanager
    def read(self) -> Iterator[Any]:
        if self.error is not None:
            raise self.error
        yield None

    write = read

    def bare_write(self, *, urgent: bool = False) -> Any:
        return self.read()


class Time:
    def __init__(self) -> None:
        self.steady = 0.0


@pytest.fixture
def broken() -> BrokenDatabase:
    return BrokenDatabase()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def database(broken: BrokenDatabase, time: Time) -> Iterator[Database]:
    made = Database(cast(UnitOfWork, broken), Clock(steady=lambda: time.steady))
    yield made
    made.close()


@pytest.fixture
async def bus(database: Database) -> AsyncIterator[MemoryBus]:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    await Messaging(
        database, bus, Timeouts(), FailureDetector(database.clock.steady), Measurements(), Broadcast()
    ).start()
    yield bus
    await bus.close()


@asynccontextmanager
async def http(database: Database) -> AsyncIterator[httpx.AsyncClient]:
    parts = {
        "database": database,
        "identities": Identities(database, TOKEN),
        "measurements": Measurements(),
    }
    app = make_app(cast(Context, type("Parts", (), parts)), lambda: None if database.answers else "the database")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://manager", headers=headers) as client:
        yield client


@pytest.mark.parametrize(
    ("subject", "query"),
    [("ces.v1.hb.n1", Heartbeat(node="n1", boot="b")), ("ces.v1.rpc.manager.snapshot", SnapshotQuery())],
)
async def test_agents_and_controllers_learn_that_it_is_away_and_no_more(
    bus: MemoryBus, broken: BrokenDatabase, subject: str, query: Any
) -> None:
    with pytest.raises(RemoteError) as refused:
        await bus.request(subject, query.encode())
    assert (refused.value.code, refused.value.message) == ("unavailable", "the database does not answer")
    broken.error = DataError("SELECT 1", {}, Exception(SECRET))
    with pytest.raises(RemoteError) as refused:
        await bus.request(subject, query.encode())
    assert (refused.value.code, refused.value.message) == ("internal", "the manager failed at this: DataError")


async def test_clients_learn_that_it_is_away_and_no_more(database: Database, broken: BrokenDatabase) -> None:
    async with http(database) as client:
        for error, status in [(broken.error, 503), (DataError("SELECT 1", {}, Exception(SECRET)), 500)]:
            broken.error = error
            answer = await client.get("/v1/jobs")
            assert answer.status_code == status
            assert answer.headers["content-type"] == "application/problem+json"
            assert "db.internal" not in answer.text


async def test_the_manager_is_ready_only_while_the_database_answers(
    database: Database, broken: BrokenDatabase, time: Time
) -> None:
    async with http(database) as client:
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/v1/jobs")).status_code == 503
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["missing"]) == (503, "the database")
        broken.error = None
        await database.read(lambda tx: None)
        assert (await client.get("/readyz")).status_code == 200


async def test_a_database_that_hangs_does_not_answer(database: Database, time: Time) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        assert go_on.wait(60)

    task = asyncio.ensure_future(database.in_writer(hang))
    await asyncio.to_thread(begun.wait, 60)
    assert database.answers
    time.steady += HANGS_S
    assert not database.answers
    go_on.set()
    await task
    assert database.answers


async def test_nobody_waits_for_what_followers_of_the_state_are_told(broken: BrokenDatabase) -> None:
    """To tell all of it takes seconds, and every service may ask for it at once."""
    broken.error = None
    database = Database(cast(UnitOfWork, broken))
    held = threading.Event()
    followers = [asyncio.create_task(database.tell(lambda tx: held.wait(60))) for _ in range(9)]
    try:
        assert await asyncio.wait_for(database.read(lambda tx: "a report"), 60) == "a report"
    finally:
        held.set()
    assert all(await asyncio.gather(*followers))
    database.close()
