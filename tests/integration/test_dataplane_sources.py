"""Plain tunnels between hosts with several addresses: neighbours take frames from the one that they were told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from dataplane_row import MBIT, Row, ip, row_of
from namespace_traffic import Stream, reaches, streams
from waiting import until

from ces_common.messages.desired import DesiredNetwork

pytestmark = pytest.mark.needs("root")
OTHER = "172.31.0.201"  # of n1, which routes to its neighbours choose


@pytest.fixture
async def row() -> AsyncIterator[Row]:
    async with row_of(2, tunnelled=True, lan_mtu=1500, bandwidth=20 * MBIT) as row:
        row.reserve(1, row.worker("one", 1, "a"), row.worker("two", 2, "a"), 10 * MBIT)
        yield row


def add_address(row: Row) -> None:
    ip("-n", row.underlay(1), "addr", "add", f"{OTHER}/24", "dev", "eth0")
    ip("-n", row.underlay(1), "route", "replace", "172.31.0.0/24", "dev", "eth0", "src", OTHER)


def told(row: Row, local: str) -> DesiredNetwork:
    """The document of n1, which says that it sends from an address; an earlier network-ctl said nothing of that."""
    desired = row.desired(1)
    (link,) = desired.links
    assert link.vxlan is not None
    other = link.model_copy(update={"vxlan": link.vxlan.model_copy(update={"local": local})})
    return desired.model_copy(update={"links": [other]})


def device(row: Row) -> tuple[int, str]:
    """Its index, and the address that it sends from."""
    (link,) = json.loads(ip("-n", row.namespace(1), "-j", "-d", "link", "show", "to-n2"))
    return link["ifindex"], link["linkinfo"]["info_data"].get("local", "")


async def test_a_host_sends_from_the_address_that_its_neighbours_know(row: Row) -> None:
    one, two = row.workers
    add_address(row)
    await row.apply()
    assert await asyncio.to_thread(reaches, one.file, two.file, two.address)
    assert await asyncio.to_thread(reaches, two.file, one.file, one.address)
    made = device(row)
    await row.apply()
    assert device(row) == made, "what is right is left alone"


async def test_a_tunnel_that_sends_from_elsewhere_is_made_again_under_a_connection(row: Row) -> None:
    one, two = row.workers
    await row.apply()
    assert await row.networks[1].apply(told(row, ""), row.sandboxes(1)) == {}
    before, local = device(row)
    assert local == ""
    with streams((one.file, two.file, two.address)) as (stream,):
        await flows(stream)
        add_address(row)
        await row.networks[1].close()
        row.networks[1] = row.network(1)
        await row.networks[1].open()
        await row.apply()
        await flows(stream)
    assert device(row)[0] != before
    assert device(row)[1] == "172.31.0.1"
    assert await row.networks[1].apply(told(row, OTHER), row.sandboxes(1)) == {}
    assert device(row)[1] == OTHER
    await row.apply()
    assert device(row)[1] == "172.31.0.1"
    assert await asyncio.to_thread(reaches, two.file, one.file, one.address)


async def flows(stream: Stream) -> None:
    before = stream.received
    await until(lambda: stream.received > before + 100_000)
    assert stream.failed is None


async def test_an_address_that_is_translated_on_the_way_is_none_to_send_from(row: Row) -> None:
    one, two = row.workers
    await row.apply()
    assert await row.networks[1].apply(told(row, "203.0.113.1"), row.sandboxes(1)) == {}
    assert device(row)[1] == ""
    assert await asyncio.to_thread(reaches, one.file, two.file, two.address)
