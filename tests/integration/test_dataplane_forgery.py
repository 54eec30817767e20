"""What a stranger on the underlay, or a neighbour, gets into a tunnel that is not its own: nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from dataplane_row import MBIT, Row, ip, row_of
from forged_frames import ear, frame, say, send_vxlan

from ces_edge_agent.dataplane.netlink.namespace import DIRECTORY

pytestmark = pytest.mark.needs("root")


@pytest.fixture
async def row() -> AsyncIterator[Row]:
    """Three hosts and a stranger on one switch."""
    async with row_of(3, tunnelled=True, lan_mtu=1500, bandwidth=20 * MBIT) as row:
        yield row


def mac(row: Row, host: int, peer: int) -> str:
    (link,) = json.loads(ip("-n", row.namespace(host), "-j", "link", "show", f"to-n{peer}"))
    return str(link["address"])


def add_stranger(row: Row, address: str) -> str:
    """A host on the same switch."""
    name = f"{row.prefix}forger"
    row.add_namespace(name)
    ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", "forger", "netns", f"{row.prefix}lan")
    ip("-n", f"{row.prefix}lan", "link", "set", "forger", "master", "lan", "up")
    ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
    ip("-n", name, "link", "set", "eth0", "up")
    return name


async def test_strangers_frames_with_the_right_network_identifier_do_not_arrive(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
    await row.apply()

    def attack() -> list[bytes]:
        forger = DIRECTORY / add_stranger(row, "172.31.0.66")
        near, far = mac(row, 1, 2), mac(row, 2, 1)
        with ear(one.file, one.address) as listener:
            for source, name in ((far, b"as n2"), ("02:00:00:00:00:66", b"as itself"), (near, b"as n1")):
                inner = frame(source, near, two.address, one.address, name)
                send_vxlan(forger, "172.31.0.1", 101, inner)
            say(two.file, one.address, b"from two")
            return listener.heard(last=b"from two")

    assert await asyncio.to_thread(attack) == [b"from two"]


async def test_a_neighbour_gets_nothing_into_a_tunnel_between_others(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
    await row.apply()

    def attack() -> list[bytes]:
        with ear(one.file, one.address) as listener:
            inner = frame(mac(row, 2, 1), mac(row, 1, 2), two.address, one.address, b"from n3")
            send_vxlan(DIRECTORY / row.underlay(3), "172.31.0.1", 101, inner)
            say(two.file, one.address, b"from two")
            return listener.heard(last=b"from two")

    assert await asyncio.to_thread(attack) == [b"from two"]


async def test_what_the_filter_is_made_of_is_repaired_and_goes_with_the_tunnel(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
    await row.apply()
    plane = row.namespace(1)
    far = mac(row, 2, 1)

    def entries() -> str:
        return ip("netns", "exec", plane, "bridge", "fdb", "show", "dev", "to-n2")

    assert f"{far} dst 172.31.0.2" in entries()
    ip("netns", "exec", plane, "bridge", "fdb", "del", far, "dev", "to-n2")
    await row.apply()
    assert f"{far} dst 172.31.0.2" in entries()

    def reached() -> list[bytes]:
        with ear(one.file, one.address) as listener:
            say(two.file, one.address, b"again")
            return listener.heard(last=b"again")

    assert await asyncio.to_thread(reached) == [b"again"]
    desired = row.desired(1, generation=2)
    bare = desired.model_copy(update={"links": [], "subnets": [], "endpoints": [], "policies": [], "classes": []})
    assert await row.networks[1].apply(bare, {}) == {}
    ip("-n", plane, "link", "add", "to-n2", "type", "veth", "peer", "name", "other", "netns", row.namespace(3))
    for space, device, address in ((plane, "to-n2", "192.0.2.1"), (row.namespace(3), "other", "192.0.2.2")):
        ip("-n", space, "addr", "add", f"{address}/24", "dev", device)
        ip("-n", space, "link", "set", device, "up")

    def over_the_wire() -> list[bytes]:
        with ear(DIRECTORY / plane, "192.0.2.1") as listener:
            say(DIRECTORY / row.namespace(3), "192.0.2.1", b"by wire")
            return listener.heard(last=b"by wire")

    assert await asyncio.to_thread(over_the_wire) == [b"by wire"]
