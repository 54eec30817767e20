"""Credentials of nodes on a real server, with a manager and agents that hold them: renewed, ended, and replaced."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from databases import new_database
from nats_identities import SOON
from nats_process import NatsServer
from rest_api import Api, running_api
from structlog.testing import capture_logs

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.nats_client import TolerantClient
from ces_common.bus.port import AccessRefused, BusError, BusUnavailable, Message, Subscription
from ces_common.messages.reports import Heartbeat
from ces_common.natsauth import Credentials, init_trust, issue_user, server_config
from ces_common.natsauth.jwt import claims_of
from ces_common.natsauth.keys import public_key
from ces_common.tls.pins import trusting
from ces_edge_agent.enrolment import Membership, ensure_joined
from ces_edge_agent.renewal import Renewal
from ces_edge_agent.settings import AgentSettings

LONG_S, SHORT_S = 86400.0, 8.0
NODE = "n1"


@dataclass
class Site:
    """A broker, a manager, and where devices keep their state."""

    api: Api
    server: NatsServer
    folder: Path

    async def join(self, device: str) -> Membership:
        token = (await self.api.http.post("/v1/nodes/tokens", json={"node": NODE})).json()["token"]
        settings = AgentSettings(
            node=NODE, manager_url=str(self.api.http.base_url), state_dir=self.folder / device, join_token=token
        )
        return await ensure_joined(settings)

    def bus(self, membership: Membership) -> NatsBus:
        return NatsBus(membership.urls(), name=NODE, credentials=membership.held())

    def renewal(self, bus: NatsBus, membership: Membership) -> Renewal:
        return Renewal(bus, membership, NODE, str(self.api.http.base_url), trusting(None), time.monotonic)

    def end(self, membership: Membership) -> None:
        """The credential of a device that was off for long."""
        held = membership.held()
        key = init_trust(self.folder / "trust").signing_key("agent")
        membership.renew(Credentials(issue_user(key, NODE, public_key(held.seed), -10), held.seed))


@asynccontextmanager
async def running_site(folder: Path, life_s: float) -> AsyncIterator[Site]:
    trust = init_trust(folder / "trust")
    with NatsServer(folder / "server", server_config(trust, store_dir=folder / "store", port=-1)) as server:
        async with running_api(folder, new_database("sqlite", folder), broker=server, life_s=life_s) as api:
            yield Site(api, server, folder)


@asynccontextmanager
async def going_on(renewal: Renewal) -> AsyncIterator[None]:
    task = asyncio.create_task(renewal.run())
    try:
        yield
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while not happened():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def is_let_in(site: Site, credentials: Credentials) -> bool:
    bus = NatsBus(site.server.url, name=NODE, credentials=credentials)
    try:
        await bus.connect(deadline_s=SOON)
    except AccessRefused:
        return False
    finally:
        await bus.close()
    return True


async def test_the_device_before_is_thrown_out_as_another_takes_its_place(tmp_path: Path) -> None:
    async with running_site(tmp_path, LONG_S) as site:
        before = await site.join("before")
        bus = site.bus(before)
        await bus.connect(deadline_s=SOON)
        await bus.request(subjects.heartbeat(NODE), Heartbeat(node=NODE, boot="b", machine="old").encode())
        after = await site.join("after")
        async with asyncio.timeout(SOON):
            with suppress(BusUnavailable):
                while True:
                    await bus.request(subjects.heartbeat(NODE), Heartbeat(node=NODE, boot="b", machine="old").encode())
                    await asyncio.sleep(0.15)  # ten a second are answered, and no more
        await bus.close()
        assert not await is_let_in(site, before.held())
        assert await is_let_in(site, after.held())


async def test_a_credential_is_renewed_and_nothing_is_lost_on_the_way(tmp_path: Path) -> None:
    """Meanwhile the agent asks for its lease, hears its documents and answers requests; the broker ends the connection
    of a credential that has ended."""
    async with running_site(tmp_path, SHORT_S) as site:
        membership = await site.join("device")
        first = membership.held()
        bus, lost, heard, told, failed = site.bus(membership), [], set[bytes](), 0, []

        async def reconnected() -> None:
            lost.append("connection")

        async def took(key: str, value: bytes | None) -> None:
            heard.add(value or b"")

        async def echo(message: Message) -> bytes:
            return message.data

        bus.on_reconnect(reconnected)
        await bus.connect(deadline_s=SOON)
        await bus.kv_subscribe(NODE, took)
        await bus.serve(subjects.agent_rpc(NODE, "logs"), echo)
        manager = site.api.bus
        controller = NatsBus(
            site.server.url,
            name="compute-ctl",
            credentials=init_trust(site.folder / "trust").new_credentials("compute-ctl", "compute-ctl"),
        )
        await controller.connect(deadline_s=SOON)
        renewals = set[str]()
        async with going_on(site.renewal(bus, membership)), asyncio.timeout(SOON):
            ended = claims_of(first.jwt)["exp"] + SHORT_S
            while time.time() < ended or len(renewals) < 3:
                told += 1
                try:
                    await controller.kv_put(subjects.desired_key(NODE, "compute"), str(told).encode())
                    await bus.request(subjects.heartbeat(NODE), Heartbeat(node=NODE, boot="b").encode())
                    await manager.request(subjects.agent_rpc(NODE, "logs"), b"x")
                except BusError as error:
                    failed.append(f"{type(error).__name__}: {error}")
                assert bus.connected
                renewals.add(membership.held().jwt)
                await asyncio.sleep(0.15)  # ten heartbeats a second are taken, and no more
        assert failed == []
        assert lost == []
        await until(lambda: heard >= {str(number).encode() for number in range(1, told + 1)})
        assert not await is_let_in(site, first), "it has ended"
        assert await is_let_in(site, membership.held())
        await bus.close()
        await controller.close()


async def test_who_subscribes_while_the_credential_changes_goes_on_hearing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the connection that ends, after all others were moved to the one that takes its place."""
    async with running_site(tmp_path, LONG_S) as site:
        membership = await site.join("device")
        bus, heard = site.bus(membership), list[bytes]()
        await bus.connect(deadline_s=SOON)
        flush, late = TolerantClient.flush, list[Subscription]()

        async def took(_: str, value: bytes | None) -> None:
            heard.append(value or b"")

        async def flushed_later(client: TolerantClient, timeout: int = 10) -> None:
            monkeypatch.undo()
            late.append(await bus.kv_subscribe(NODE, took))
            await flush(client, timeout)

        async def echo(message: Message) -> bytes:
            return message.data

        await bus.serve(subjects.agent_rpc(NODE, "logs"), echo)
        monkeypatch.setattr(TolerantClient, "flush", flushed_later)
        await bus.use(membership.held())
        assert len(late) == 1
        trust = init_trust(site.folder / "trust")
        controller = NatsBus(
            site.server.url, name="compute-ctl", credentials=trust.new_credentials("compute-ctl", "compute-ctl")
        )
        await controller.connect(deadline_s=SOON)
        async with asyncio.timeout(SOON):
            for number in count():  # the connection before may hear the first of them
                if b"99" in heard:
                    break
                await controller.kv_put(subjects.desired_key(NODE, "compute"), str(min(number, 99)).encode())
        await bus.close()
        await controller.close()


async def test_a_device_that_was_off_for_long_is_let_in_again(tmp_path: Path) -> None:
    async with running_site(tmp_path, LONG_S) as site:
        membership = await site.join("device")
        site.end(membership)
        bus = site.bus(membership)
        async with going_on(site.renewal(bus, membership)), asyncio.timeout(SOON):
            with pytest.raises(AccessRefused):
                await bus.connect()
            while not bus.connected:
                with suppress(AccessRefused):
                    await bus.connect()  # as the agent does again and again
        assert await is_let_in(site, membership.held())
        await bus.close()


async def test_a_credential_that_ends_while_the_broker_is_away_costs_a_moment_only(tmp_path: Path) -> None:
    async with running_site(tmp_path, LONG_S) as site:
        membership = await site.join("device")
        held = membership.held()
        key = init_trust(site.folder / "trust").signing_key("agent")
        membership.renew(Credentials(issue_user(key, NODE, public_key(held.seed), SHORT_S), held.seed))
        ends = claims_of(membership.held().jwt)["exp"]
        bus = site.bus(membership)
        await bus.connect(deadline_s=SOON)
        site.server.kill()
        await until(lambda: not bus.connected and time.time() > ends)
        async with going_on(site.renewal(bus, membership)):
            site.server.start()
            await until(lambda: bus.connected)
        await bus.close()


async def test_a_device_whose_place_was_taken_while_it_was_off_is_told_what_to_do(tmp_path: Path) -> None:
    async with running_site(tmp_path, LONG_S) as site:
        before = await site.join("before")
        await site.join("after")
        bus = site.bus(before)
        with capture_logs() as lines:
            async with going_on(site.renewal(bus, before)):
                with pytest.raises(AccessRefused):
                    await bus.connect(deadline_s=SOON)
                await until(lambda: any(line["log_level"] == "error" for line in lines))
        (said,) = [line["error"] for line in lines if line["log_level"] == "error"][:1]
        assert "another device has joined in the place of node n1" in said
        assert "delete the agent's state folder and let it join with a new token (ces node token --node n1)" in said
        await bus.close()
