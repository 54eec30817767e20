"""Streams that several servers keep, and one server that cannot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import nats
import pytest
from bus_clients import JOBS, Seen, put_job
from nats_process import NatsServer, cluster_configs
from waiting import PATIENCE_S

from ces_common.bus import NatsBus
from ces_common.bus.nats_streams import STREAMS
from ces_common.bus.port import BusError


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[NatsServer]]:
    with ExitStack() as running:
        configs = cluster_configs(tmp_path, 3)
        yield [
            running.enter_context(NatsServer(tmp_path / f"server{number}", config))
            for number, config in enumerate(configs)
        ]


@asynccontextmanager
async def client(*servers: NatsServer, replicas: int) -> AsyncIterator[NatsBus]:
    bus = NatsBus([server.url for server in servers], name="test", replicas=replicas)
    await bus.connect(deadline_s=PATIENCE_S)
    try:
        yield bus
    finally:
        await bus.close()


async def eventually(attempt: Callable[[], Awaitable[object]]) -> None:
    """Until it no longer fails: the servers must find each other, and a leader."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await attempt()
                return
            except BusError:
                await asyncio.sleep(0.1)


async def replicated(server: NatsServer, copies: int) -> None:
    """Wait until each stream has that many."""
    admin = await nats.connect(server.url)
    try:
        async with asyncio.timeout(PATIENCE_S):
            for stream in STREAMS:
                assert stream.name is not None
                while True:
                    with suppress(nats.errors.Error):  # not while a stream moves
                        if (await admin.jetstream().stream_info(stream.name)).config.num_replicas == copies:
                            break
                    await asyncio.sleep(0.1)
    finally:
        await admin.close()


async def test_replicas_are_added_never_taken_away_and_bear_the_loss_of_a_server(servers: list[NatsServer]) -> None:
    async with client(*servers, replicas=1) as one:
        await eventually(one.provision)
        await replicated(servers[0], 1)
    async with client(*servers, replicas=3) as three:
        await eventually(three.provision)
        await replicated(servers[0], 3)
    seen = Seen()
    async with client(*servers, replicas=1) as one:
        await eventually(one.provision)
        await replicated(servers[0], 3)
        await one.consume("svc", JOBS, seen)
        await eventually(lambda: put_job(one, 1))
        await eventually(lambda: one.kv_put("n1.compute", b"desired"))
        await asyncio.to_thread(servers[2].kill)
        await eventually(lambda: put_job(one, 2))
        async with asyncio.timeout(PATIENCE_S):
            while (await seen.next()).message_id != "m2":
                pass

        async def read() -> None:
            assert await one.kv_get("n1.compute") == b"desired"

        await eventually(read)


async def test_one_server_that_cannot_keep_replicas_is_told_by_the_settings_name(server: NatsServer) -> None:
    async with client(server, replicas=3) as bus:
        with pytest.raises(BusError, match=r"3 replicas \(CES_NATS_REPLICAS\): replicas > 1 not supported"):
            await bus.provision()
