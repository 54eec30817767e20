"""Servers of regions: each with trust of its own, and a hub between them."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nats
from nats.aio.client import Client, RawCredentials
from nats_identities import administrator
from nats_process import NatsServer

from ces_common.natsauth import Trust, credentials_file, init_trust, jwt, new_user_key, save_credentials, server_config
from ces_common.natsauth.permissions import Permissions
from ces_common.natsauth.regions import Hub, Leaf, hub_config, init_hub, init_region, wire_credentials
from ces_common.tls.certificates import init_authority, renew
from ces_testbed.spec import LOCALHOST, free_port

EVERYTHING = Permissions(publish=(">",), subscribe=(">",), answers=True)


@dataclass
class Region:
    name: str
    trust: Trust
    account: str
    server: NatsServer

    async def service(self) -> Client:
        """The wire as the service ``federation`` of this region has it."""
        held = wire_credentials(self.trust, self.account, self.name)
        return await connect(self.server.url, credentials_file(held.jwt, held.seed))

    async def master(self) -> Client:
        """The wire for whoever holds this region's own keys and server: every right in the region's account."""
        key = new_user_key()
        seed = (self.trust.directory / "regions-account.seed").read_text().strip()
        return await connect(
            self.server.url, credentials_file(jwt.system_user(seed, key.public, "master", EVERYTHING), key.seed)
        )

    async def cluster(self) -> Client:
        """CES's own account, with every right."""
        return await administrator(self.server.url, self.trust)


@dataclass
class World:
    hub: Hub
    hub_server: NatsServer
    regions: dict[str, Region]
    authority: Path  # of the hub's certificate
    leaf: Leaf  # of the first region


async def connect(url: str, credentials: str) -> Client:
    async def ignored(error: Exception) -> None:
        """Refusals are asserted by what does not arrive."""

    return await nats.connect(url, user_credentials=RawCredentials(credentials), error_cb=ignored)


@contextmanager
def running_servers(home: Path, names: Sequence[str]) -> Iterator[World]:
    """One server for each region, and the hub."""
    hub = init_hub(home / "hub" / "trust")
    authority = init_authority(home / "hub" / "tls")
    certificate = home / "hub" / "tls" / "hub.pem"
    renew(certificate, authority, ["127.0.0.1"], timedelta(days=1), datetime.now(UTC))
    leaf_port = free_port(LOCALHOST, set())
    config = hub_config(hub, host="127.0.0.1", port=-1, leaf_port=leaf_port, certificate=certificate)
    with ExitStack() as running:
        server = running.enter_context(NatsServer(home / "hub" / "server", config))
        regions, leaves = {}, {}
        for name in names:
            trust = init_trust(home / name / "trust")
            account, token = init_region(trust, name)
            file = home / name / "hub.creds"
            save_credentials(file, hub.admit(name))
            url = f"tls://127.0.0.1:{leaf_port}"
            leaves[name] = Leaf(name, (url,), file, account, token, home / "hub" / "tls" / "authority.pem")
            text = server_config(trust, store_dir=home / name / "store", port=-1, leaf=leaves[name])
            own = running.enter_context(NatsServer(home / name / "server", text))
            regions[name] = Region(name, trust, account, own)
        yield World(hub, server, regions, home / "hub" / "tls" / "authority.pem", leaves[names[0]])


async def listener(world: World) -> Client:
    """All that passes the hub, for whoever holds the hub's own keys."""
    key = new_user_key()
    seed = (world.hub.directory / "account.seed").read_text().strip()
    user = jwt.system_user(seed, key.public, "listener", Permissions(publish=(), subscribe=(">",), answers=False))
    context = ssl.create_default_context(cafile=str(world.authority))
    url = world.hub_server.url.replace("nats://", "tls://")
    creds = RawCredentials(credentials_file(user, key.seed))
    return await nats.connect(url, user_credentials=creds, tls=context, tls_handshake_first=True)
