"""Counters of a real kernel: what is read straight from its bytes is what pyroute2 makes of them."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from dataplane_row import ip, tc

from ces_edge_agent.dataplane.meters import ClassCounters, LinkCounters
from ces_edge_agent.dataplane.netlink.counter_reader import CounterReader
from ces_edge_agent.dataplane.netlink.namespace import DIRECTORY, in_namespace, netlink
from ces_edge_agent.dataplane.plan.objects import TC_ROOT
from ces_edge_agent.ports import DataPlaneError

pytestmark = pytest.mark.needs("root")
DEVICE, SLOW = "to-n2", 2
DATAGRAM = bytes(1000)
TRIES = 100


@pytest.fixture
def namespace() -> Iterator[Path]:
    """One with a shaped device behind which most of what was sent still waits, and some was dropped."""
    path = DIRECTORY / f"dpt{secrets.token_hex(3)}"
    ip("netns", "add", path.name)
    try:
        ip("-n", path.name, "link", "add", DEVICE, "type", "veth", "peer", "name", "far")
        for device in (DEVICE, "far"):
            ip("-n", path.name, "link", "set", device, "up")
        ip("-n", path.name, "addr", "add", "10.9.0.1/24", "dev", DEVICE)
        ip("-n", path.name, "neigh", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:09", "dev", DEVICE)
        on = ("-n", path.name)
        tc(*on, "qdisc", "add", "dev", DEVICE, "root", "handle", "1:", "htb", "default", str(SLOW))
        tc(*on, "class", "add", "dev", DEVICE, "parent", "1:", "classid", "1:ffff", "htb", "rate", "40gbit")
        for minor, rate in ((SLOW, "8kbit"), (0x30, "20gbit")):
            parent = ("dev", DEVICE, "parent", "1:ffff", "classid", f"1:{minor:x}")
            tc(*on, "class", "add", *parent, "htb", "rate", rate, "burst", "4kb")
            tc(*on, "qdisc", "add", "dev", DEVICE, "parent", f"1:{minor:x}", "handle", f"{minor:x}:", "bfifo",
               "limit", "20000")  # fmt: skip
        with in_namespace(path, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
            for _ in range(60):
                sender.sendto(DATAGRAM, ("10.9.0.2", 9))
        yield path
    finally:
        ip("netns", "del", path.name)


def classes_by_pyroute2(namespace: Path) -> dict[int, ClassCounters]:
    with netlink(namespace) as ipr:
        (index,) = ipr.link_lookup(ifname=DEVICE)
        found = {}
        for message in ipr.get_classes(index=index):
            stats = message.get_attr("TCA_STATS2")
            queue = stats.get_attr("TCA_STATS_QUEUE")
            sent = stats.get_attr("TCA_STATS_BASIC")["bytes"]
            found[message["handle"] & 0xFFFF] = ClassCounters(sent, queue["drops"], queue["backlog"])
        return found


def links_by_pyroute2(namespace: Path) -> dict[str, LinkCounters]:
    with netlink(namespace) as ipr:
        drops = {
            message["index"]: message.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")["drops"]
            for message in ipr.get_qdiscs()
            if message["parent"] == TC_ROOT
        }
        found = {}
        for message in ipr.get_links():
            stats = message.get_attr("IFLA_STATS64")
            found[message.get_attr("IFLA_IFNAME")] = LinkCounters(
                stats["tx_bytes"],
                stats["rx_bytes"],
                stats["tx_dropped"] + stats["rx_dropped"] + drops.get(message["index"], 0),
                stats["tx_errors"] + stats["rx_errors"],
            )
        return found


def test_both_find_the_same(namespace: Path) -> None:
    reader = CounterReader(namespace)
    devices = {DEVICE, "far", "lo"}
    for _ in range(TRIES):  # a packet may leave in between, about one a second
        before = classes_by_pyroute2(namespace), links_by_pyroute2(namespace)
        read = reader.classes(DEVICE), reader.links(devices)
        if before == (classes_by_pyroute2(namespace), links_by_pyroute2(namespace)):
            break
    reader.close()
    assert read == before
    slow = read[0][SLOW]
    assert slow.sent > 0
    assert slow.drops > 0
    assert slow.waiting > 0
    assert read[1][DEVICE].drops >= slow.drops
    assert read[1]["far"].received > 0


def test_what_is_not_there_counts_nothing(namespace: Path) -> None:
    reader = CounterReader(namespace)
    assert reader.classes("to-n9") == {}
    assert reader.classes("far") == {}
    assert set(reader.links(["far", "to-n9"])) == {"far"}
    reader.close()


def test_a_reader_that_failed_reads_again_once_it_can() -> None:
    path = DIRECTORY / f"dpt{secrets.token_hex(3)}"
    reader = CounterReader(path)
    with pytest.raises(DataPlaneError, match=r"counters of lo cannot be read: .* No such file or directory"):
        reader.classes("lo")
    ip("netns", "add", path.name)
    try:
        assert reader.classes("lo") == {}
        assert set(reader.links(["lo"])) == {"lo"}
    finally:
        reader.close()
        ip("netns", "del", path.name)
