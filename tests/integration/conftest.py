"""A real broker with the trust of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from nats_identities import SOON, Cluster, Enter

from ces_common.bus import NatsBus
from ces_common.natsauth import init_trust, server_config
from ces_common.natsserver import NatsServer


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
