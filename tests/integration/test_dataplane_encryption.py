"""Encrypted links between hosts on one switch, by each implementation of WireGuard that the machine has."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from dataplane_row import MBIT, PORT, Row, ip, row_of
from encrypted_row import KINDS, all_up, device, encrypted_row, have_only, inside, programs, state, until
from forged_frames import ear, frame, say, send_vxlan
from namespace_traffic import measure, reaches, streams
from underlay_capture import capture, udp_ports

from ces_common.messages.desired import DesiredNetwork
from ces_edge_agent.dataplane.netlink.namespace import DIRECTORY, in_namespace
from ces_edge_agent.dataplane.plan.derivation import mac
from ces_edge_agent.dataplane.wireguard import implementations, uapi
from ces_edge_agent.dataplane.wireguard.implementations import Kind
from ces_edge_agent.dataplane.wireguard.keys import new_key, public_of

pytestmark = pytest.mark.needs("root")
HEADERS = 66 / 1384  # Ethernet, IP and TCP with timestamps, of a full frame of 1370 bytes
MARKER = b"nobody but the neighbour may read this"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    return have_only(request.param, monkeypatch)


@pytest.fixture
async def row(kind: Kind) -> AsyncIterator[Row]:
    async with encrypted_row() as row:
        yield row


@pytest.mark.parametrize("encrypted", [False, True])
async def test_what_passes_between_hosts_says_nothing(kind: Kind, encrypted: bool) -> None:
    """Neither what is sent nor between whom; over a plain tunnel, both can be read."""
    async with row_of(2, lan_mtu=1500, tunnelled=True, encrypted=encrypted) as row:
        one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
        await row.apply()
        await until(lambda: all_up(row), "links are up")

        def speak() -> list[bytes]:
            with capture(DIRECTORY / row.underlay(1), "eth0") as passing, ear(two.file, two.address) as listener:
                say(one.file, two.address, MARKER)
                assert listener.heard(last=MARKER) == [MARKER]
                return passing.frames()

        frames = await asyncio.to_thread(speak)
        assert any(MARKER in each for each in frames) is not encrypted
        assert udp_ports(frames) == ({PORT} if encrypted else {4789})


async def test_what_is_forged_does_not_arrive(row: Row) -> None:
    """Neither a stranger's VXLAN frames, nor those that a neighbour sends into a tunnel between others. A host does not
    know the tunnel's addresses, nor WireGuard the host's: these ways may be closed, and the other two are not."""
    two, three = row.worker("two", 2, "a"), row.worker("three", 3, "a")
    await row.apply()
    await until(lambda: all_up(row), "links are up")

    def attack() -> tuple[list[bytes], list[tuple[str, str]]]:
        sent = []
        with ear(two.file, two.address) as listener:
            inner = frame(mac("n3", "to-n2"), mac("n2", "to-n3"), three.address, two.address, b"forged")
            for host in ("172.31.0.2", "10.2.0.1"):
                for namespace in (DIRECTORY / row.underlay(1), inside(row, 1)):
                    with suppress(OSError):
                        send_vxlan(namespace, host, row.vni(2, 3), inner)
                        sent.append((namespace.name, host))
            say(three.file, two.address, b"from three")
            return listener.heard(last=b"from three"), sent

    heard, sent = await asyncio.to_thread(attack)
    assert heard == [b"from three"]
    assert {(row.underlay(1), "172.31.0.2"), (inside(row, 1).name, "10.2.0.1")} <= set(sent)


async def test_who_has_another_key_gets_nothing(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
    right = row.keys[2]
    row.keys[2] = [public_of(new_key())]
    await row.apply()
    assert not await asyncio.to_thread(reaches, one.file, two.file, two.address)
    assert not await asyncio.to_thread(reaches, two.file, one.file, one.address)
    row.keys[2] = right
    await row.apply()
    await until(lambda: all_up(row), "links are up")
    assert await asyncio.to_thread(reaches, one.file, two.file, two.address)


async def test_a_link_whose_neighbour_has_told_no_key_is_down_and_nothing_is_sent_in_the_clear(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
    row.reserve(1, one, two, 10 * MBIT)
    row.keys[2] = []
    with capture(DIRECTORY / row.underlay(1), "eth0") as passing:
        failed = await row.networks[1].apply(row.desired(1), row.sandboxes(1))
        assert failed == {"a": "the link to n2 cannot be encrypted: n2 has told no key"}

        async def said() -> bool:
            return bool(await row.networks[1].links())

        await until(said, "n1 says what it knows of its link")
        (status,) = await row.networks[1].links()
        assert status.reason == "device to-n2 cannot be encrypted: n2 has told no key"
        assert status.state == "down"
        assert not await asyncio.to_thread(reaches, one.file, two.file, two.address)
        assert udp_ports(passing.frames()) == set()


@pytest.mark.alone
async def test_rates_hold_on_encrypted_links(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 3, "a")
    row.reserve(1, one, two, 20 * MBIT)
    row.reserve(2, two, one, 10 * MBIT)
    await row.apply()
    await until(lambda: all_up(row), "links are up")
    with streams((one.file, two.file, two.address), (two.file, one.file, one.address)) as opened:
        there, back = await asyncio.to_thread(measure, opened, 2.0)
    assert there == pytest.approx(20 * MBIT * (1 - HEADERS), rel=0.06)
    assert back == pytest.approx(10 * MBIT * (1 - HEADERS), rel=0.06)


async def test_a_restarted_agent_leaves_encrypted_links_as_they_are(row: Row, kind: Kind) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
    row.reserve(1, one, two, 20 * MBIT)
    await row.apply()
    await until(lambda: all_up(row), "links are up")

    def made() -> tuple[object, ...]:
        there = state(row, 1, kind)
        return (
            ip("-n", inside(row, 1).name, "link"), ip("-n", row.namespace(1), "link"), programs(row, 1),
            there.public, there.port, {key: peer.shaken for key, peer in there.peers.items()},
        )  # fmt: skip

    before = made()
    with streams((one.file, two.file, two.address)) as (stream,):
        await row.networks[1].close()
        row.networks[1] = row.network(1)
        await row.networks[1].open()
        told = await row.networks[1].encryption()
        assert told is not None
        assert told.keys == row.keys[1]
        await row.apply()
        assert stream.failed is None
    assert made() == before


async def test_what_encrypts_is_made_again_where_it_is_gone(row: Row, kind: Kind) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
    await row.apply()
    await until(lambda: all_up(row), "links are up")
    before = device(row, 1)
    if kind == "wireguard-go":
        (program,) = programs(row, 1)
        os.kill(program, signal.SIGKILL)
    else:
        ip("-n", inside(row, 1).name, "link", "del", before)

    async def again() -> bool:
        return await asyncio.to_thread(reaches, one.file, two.file, two.address)

    await until(again, "the link works again, without another document")
    assert device(row, 1) == before
    await until(lambda: all_up(row), "links are up")


async def test_nothing_is_left_where_no_link_is_encrypted_any_more(row: Row, kind: Kind) -> None:
    await row.apply()
    name = device(row, 2)
    bare = row.desired(2, generation=2).model_copy(update={"links": [], "subnets": []})
    assert await row.networks[2].apply(bare, {}) == {}
    assert not inside(row, 2).exists()
    assert "vxlan" not in ip("-d", "-n", row.namespace(2), "link")

    async def ended() -> bool:
        return not programs(row, 2)

    await until(ended, "wireguard-go has ended")
    assert not uapi.path_of(name).exists()
    assert await row.networks[2].apply(row.desired(2, generation=3), {}) == {}
    await until(lambda: all_up(row), "links are up again")
    await row.networks[1].remove()
    assert not inside(row, 1).exists()


async def test_a_port_that_another_program_has_is_named(row: Row, kind: Kind) -> None:
    row.worker("one", 1, "a")
    row.worker("two", 2, "a")

    def take() -> socket.socket:
        taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        taken.bind(("", PORT))
        return taken

    with in_namespace(DIRECTORY / row.underlay(1), take):
        failed = await row.networks[1].apply(row.desired(1), row.sandboxes(1))
        assert list(failed) == ["a"]
        assert str(PORT) in failed["a"] or "in use" in failed["a"]
    await row.apply()
    await until(lambda: all_up(row), "links are up")


async def test_a_node_that_joins_again_with_other_addresses_has_its_links(row: Row, kind: Kind) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
    await row.apply()
    await until(lambda: all_up(row), "links are up")
    await row.networks[2].close()
    row.networks[2] = row.network(2)
    await row.networks[2].open()
    for host, network in row.networks.items():
        document = row.desired(host, generation=2).model_dump_json().replace("10.2.0.", "10.9.0.")
        assert await network.apply(DesiredNetwork.model_validate_json(document), row.sandboxes(host)) == {}
    assert [line.split()[3] for line in ip("-n", inside(row, 2).name, "-4", "-o", "addr").splitlines()] == [
        "10.9.0.1/32"
    ]
    await until(lambda: all_up(row), "links are up")
    assert await asyncio.to_thread(reaches, one.file, two.file, two.address.replace("10.2", "10.9"))


async def test_a_device_that_an_earlier_agent_left_half_way_is_no_obstacle() -> None:
    async with row_of(1) as row:
        name = row.namespace(1)
        ip("-n", name, "link", "add", implementations.TRIAL, "type", "bridge")
        assert await asyncio.to_thread(implementations.kernel_has_it, DIRECTORY / name) in (True, False)
        assert implementations.TRIAL not in ip("-n", name, "link")
