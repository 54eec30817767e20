"""A real broker with the trust of a cluster, and the REST API over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from databases import KINDS, new_database
from nats_identities import SOON, Cluster, Enter
from nats_process import NatsServer
from rest_api import Api, running_api

from ces_common.bus import NatsBus
from ces_common.natsauth import init_trust, server_config


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("nats-trust")
    trust = init_trust(home / "trust")
    with NatsServer(home / "server", server_config(trust, store_dir=home / "store", port=-1)) as server:
        yield Cluster(trust, server)


@pytest.fixture
async def enter(cluster: Cluster) -> AsyncIterator[Enter]:
    """Connects as somebody."""
    made: list[NatsBus] = []

    async def connect(role: str, name: str | None = None) -> NatsBus:
        name = name or role
        bus = NatsBus(cluster.server.url, name=name, credentials=cluster.trust.new_credentials(role, name))
        made.append(bus)
        await bus.connect(deadline_s=SOON)
        return bus

    manager = await connect("manager")
    await manager.provision()
    yield connect
    for bus in made:
        await bus.close()


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path, new_database("sqlite", tmp_path)) as made:
        yield made


@pytest.fixture(params=KINDS)
async def api_on_either(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    """Where the databases differ in what they put up with."""
    async with running_api(tmp_path, new_database(request.param, tmp_path)) as made:
        yield made
