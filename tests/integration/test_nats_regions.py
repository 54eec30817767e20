"""Regions on real servers: each with trust of its own, a hub between them, and what does and does not cross."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats_identities import SOON
from nats_process import NatsServer
from region_servers import World, running_servers
from waiting import wait_for

from ces_common import subjects
from ces_common.natsauth import (
    init_trust,
    save_credentials,
    server_config,
)
from ces_common.natsauth.regions import init_hub, init_region


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running_servers(tmp_path_factory.mktemp("regions"), "abc") as made:
        yield made


class Heard:
    """What comes to a client."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self._news = asyncio.Event()

    async def take(self, message: Msg) -> None:
        self.subjects.append(message.subject)
        self._news.set()

    async def until(self, subject: str) -> None:
        async with asyncio.timeout(SOON):
            while subject not in self.subjects:
                await self._news.wait()
                self._news.clear()


async def hear(client: Client, *patterns: str) -> Heard:
    heard = Heard()
    for pattern in patterns:
        await client.subscribe(pattern, cb=heard.take)
    await client.flush()
    return heard


async def arrives(sender: Client, heard: Heard, subject: str) -> None:
    """Send until it is there: a subscription spreads over the wire in its own time."""
    async with asyncio.timeout(SOON):
        while subject not in heard.subjects:
            await sender.publish(subject, b"x")
            await sender.flush()
            await asyncio.sleep(0.02)


def said(to: str, by: str, operation: str = "summary") -> str:
    return subjects.between_regions(to, by, operation, "1")


async def test_a_region_hears_what_others_say_to_it_and_nothing_else(world: World) -> None:
    a, b, c = [await world.regions[name].service() for name in "abc"]
    at_b, at_c = await hear(b, subjects.of_region("b", "*")), await hear(c, subjects.of_region("c", "*"))
    await arrives(a, at_b, said("b", "a"))
    await arrives(a, at_c, said("c", "a"))
    assert set(at_c.subjects) == {said("c", "a")}
    assert set(at_b.subjects) == {said("b", "a")}
    for each in (a, b, c):
        await each.close()


async def test_even_the_master_of_a_region_speaks_as_that_region_only(world: World) -> None:
    """Whoever holds all keys of region c, and its server, still is c to others: the hub refuses the rest."""
    b, c = await world.regions["b"].service(), await world.regions["c"].master()
    at_b = await hear(b, subjects.of_region("b", "*"))
    at_c = await hear(c, *(subjects.of_region(to, "*") for to in "abc"), "ces.>", ">")
    await arrives(c, at_b, said("b", "c"))
    forged = [said("b", "a"), said("b", "a", "answer"), "ces.v1.hb.n1", "$JS.API.STREAM.LIST"]
    for subject in forged:
        await c.publish(subject, b"x")
    await c.publish(said("b", "c", "last"), b"x")
    await c.flush()
    await at_b.until(said("b", "c", "last"))
    assert not set(forged) & set(at_b.subjects)
    # what is said to another does not come to it either
    a = await world.regions["a"].service()
    await arrives(a, at_b, said("b", "a", "secret"))
    await a.publish(said("c", "a", "last"), b"x")
    await a.flush()
    await at_c.until(said("c", "a", "last"))
    assert said("b", "a", "secret") not in at_c.subjects
    for each in (a, b, c):
        await each.close()


async def test_nothing_of_a_cluster_crosses_and_no_other_jetstream_is_reached(world: World) -> None:
    """The accounts of CES stay apart although all of them use the same subjects, and so do their streams."""
    a, b = await world.regions["a"].cluster(), await world.regions["b"].cluster()
    at_b, at_a = await hear(b, "ces.>"), await hear(a, "ces.>")
    wire = await world.regions["a"].master()
    hub_heard = await hear(wire, subjects.of_region("a", "*"), ">")
    await a.publish("ces.v1.hb.n1", b"local")
    await a.publish(said("b", "a", "local"), b"the wire's subject in the cluster's account")
    await a.flush()
    await at_a.until("ces.v1.hb.n1")
    service = await world.regions["b"].service()
    await arrives(service, hub_heard, said("a", "b"))  # the wire is up
    assert at_b.subjects == []
    assert "ces.v1.hb.n1" not in hub_heard.subjects
    await a.jetstream().add_stream(name="OF_A", subjects=["of.a"])
    own = await a.jetstream(domain="a").stream_info("OF_A")  # its own domain answers
    assert own.config.name == "OF_A"
    for asker, domain in ((b, "a"), (wire, "b"), (wire, "a")):
        with pytest.raises((nats.errors.NoRespondersError, nats.errors.TimeoutError)):
            await asker.request(f"$JS.{domain}.API.STREAM.INFO.OF_A", b"", timeout=0.5)
    for each in (a, b, wire, service):
        await each.close()


def test_the_hub_lets_in_nobody_whom_it_has_not_admitted(world: World, tmp_path: Path) -> None:
    """A server that another hub has admitted as region a."""
    trust = init_trust(tmp_path / "trust")
    account, token = init_region(trust, "a")
    save_credentials(tmp_path / "hub.creds", init_hub(tmp_path / "another").admit("a"))
    leaf = replace(world.leaf, credentials=tmp_path / "hub.creds", account=account, account_jwt=token)
    text = server_config(trust, store_dir=tmp_path / "store", port=-1, leaf=leaf)
    with NatsServer(tmp_path / "server", text) as server:
        wait_for(lambda: "Authorization Violation" in server.log_tail(100), "it is refused")


async def test_a_hub_that_is_killed_disturbs_no_cluster_and_the_wire_comes_back(world: World) -> None:
    a, b = await world.regions["a"].service(), await world.regions["b"].service()
    own = await world.regions["a"].cluster()
    at_b = await hear(b, subjects.of_region("b", "*"))
    await arrives(a, at_b, said("b", "a", "before"))
    world.hub_server.kill()
    await own.jetstream().add_stream(name="DURING", subjects=["during"])
    stored = await own.jetstream().publish("during", b"x", timeout=5)
    assert stored.stream == "DURING"
    world.hub_server.start()
    await arrives(a, at_b, said("b", "a", "after"))
    for each in (a, b, own):
        await each.close()
