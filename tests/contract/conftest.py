"""Both implementations of the bus, every kind of runtime, and both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import databases
import pytest
from bus_clients import SOON, Client
from memory_bus import MemoryBroker, MemoryBus
from nats_process import NatsServer, plain_config
from runtime_bench import KINDS, Bench, clean, endpoint
from sqlalchemy.engine import URL

from ces_common.bus import NatsBus
from ces_common.bus.port import Bus
from ces_common.db import UnitOfWork, migrate, new_engine
from ces_edge_agent.ports import Runtime


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats", plain_config(tmp_path / "nats" / "store")) as running:
        yield running


@pytest.fixture(params=["memory", "nats"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Makes connected clients of one broker."""
    made: list[Bus] = []
    if request.param == "memory":
        broker = MemoryBroker()

        def new() -> Bus:
            return MemoryBus(broker)
    else:
        url = request.getfixturevalue("server").url

        def new() -> Bus:
            return NatsBus(url, name="test")

    async def make() -> Bus:
        bus = new()
        made.append(bus)
        await bus.connect(deadline_s=SOON)
        await bus.provision()
        return bus

    yield make
    for bus in made:
        await bus.close()


@pytest.fixture(params=databases.KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    return databases.new_database(request.param, tmp_path)


@pytest.fixture
def uow(url: URL) -> Iterator[UnitOfWork]:
    """Of an empty cluster."""
    migrate(url)
    engine = new_engine(url)
    yield UnitOfWork(engine)
    engine.dispose()


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    made: Bench = request.param(tmp_path / "state")
    return made


@pytest.fixture
async def runtime(bench: Bench) -> AsyncIterator[Runtime]:
    runtime = bench.make()
    await runtime.open()
    await runtime.ensure_sandbox(endpoint())
    try:
        yield runtime
    finally:
        await clean(runtime)
