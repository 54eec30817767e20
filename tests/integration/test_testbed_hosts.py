"""Emulated hosts on this machine: what they can reach, and that nothing of them stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from waiting import wait_for

from ces_common.names import link_device
from ces_testbed.delay_keeper import keeps_delays
from ces_testbed.errors import TestbedError
from ces_testbed.hosts import Hosts, clusters, remove_hosts, traces
from ces_testbed.netlink import namespaces, routing, set_up
from ces_testbed.topology import parse_topology

pytestmark = pytest.mark.needs("root")

TOPOLOGY = """
nodes:
  - {name: a, cpu: 1, memory: 1Gi}
  - {name: b, cpu: 1, memory: 1Gi}
  - {name: s, cpu: 0}
links:
  - {src: a, dst: b, bandwidth: 10Mbit}
  - {src: a, dst: s, bandwidth: 10Mbit, both: false}
  - {src: s, dst: a, bandwidth: 20Mbit, both: false}
"""


def machine() -> tuple[set[str], set[str]]:
    with routing() as ip:
        return {link.get("ifname") for link in ip.get_links()}, set(namespaces(""))


@pytest.fixture
def cluster() -> str:
    return f"t{os.getpid():x}"


@pytest.fixture
def hosts(cluster: str) -> Iterator[Hosts]:
    made = Hosts(cluster, parse_topology(TOPOLOGY, "test"))
    made.up()
    yield made
    remove_hosts(cluster)


def inside(namespace: str, program: str, *arguments: str, timeout_s: float = 20) -> subprocess.CompletedProcess[str]:
    """A Python program run in a namespace."""
    enter = [sys.executable, "-m", "ces_testbed.enter", namespace]
    return subprocess.run(
        [*enter, sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


SERVE = """
import socket, sys
with socket.create_server((sys.argv[1], 0)) as server:
    server.settimeout(15)
    print(server.getsockname()[1], flush=True)
    peer, _ = server.accept()
    peer.sendall(b"hello")
    peer.close()
"""
CALL = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3])) as peer:
    print(peer.recv(5).decode())
"""


def talk(server: str, address: str, client: str | None, wait_s: float = 10) -> str:
    """What a client in one namespace hears from a server in another; '' where it cannot connect."""
    serving = subprocess.Popen(
        [sys.executable, "-m", "ces_testbed.enter", server, sys.executable, "-c", SERVE, address],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert serving.stdout is not None
        port = serving.stdout.readline().strip()
        if client is not None:
            return inside(client, CALL, address, port, str(wait_s)).stdout.strip()
        answer = subprocess.run(
            [sys.executable, "-c", CALL, address, port, str(wait_s)], capture_output=True, text=True, check=False
        )
        return answer.stdout.strip()
    finally:
        serving.kill()
        serving.wait()


@pytest.mark.alone
def test_up_and_down_leave_the_machine_as_it_was(cluster: str) -> None:
    before = machine()
    hosts = Hosts(cluster, parse_topology(TOPOLOGY, "test"))
    try:
        hosts.up()
        assert {f"ces-{cluster}-a", f"ces-{cluster}-s-dp"} <= machine()[1] - before[1]
        assert cluster in clusters()
        assert traces(cluster)
    finally:
        hosts.down()
    assert traces(cluster) == []
    # What others had may go meanwhile.
    wait_for(lambda: all(now <= was for now, was in zip(machine(), before, strict=True)), "nothing new is left")
    assert cluster not in clusters()


def test_up_twice_changes_nothing_and_replaces_what_is_missing(hosts: Hosts) -> None:
    gateway, address = hosts.gateway, hosts.address("b")
    with routing(hosts.data_plane("a")) as ip:
        kept = ip.link_lookup(ifname=link_device("s"))
        ip.link("del", index=ip.link_lookup(ifname=link_device("b"))[0])
    again = Hosts(hosts.cluster, hosts.topology)
    again.up()
    assert (again.gateway, again.address("b")) == (gateway, address)
    with routing(hosts.data_plane("a")) as ip:
        assert ip.link_lookup(ifname=link_device("s")) == kept
        assert ip.link_lookup(ifname=link_device("b"))


def test_up_follows_a_changed_topology(hosts: Hosts) -> None:
    smaller = parse_topology("nodes: [{name: a, cpu: 1, memory: 1Gi}, {name: s}]", "test")
    Hosts(hosts.cluster, smaller).up()
    assert not any(name.endswith(("-b", "-b-dp")) for name in traces(hosts.cluster))
    with routing(hosts.data_plane("a")) as ip:
        assert not ip.link_lookup(ifname=link_device("s"))


def test_a_wire_carries_tcp_until_it_is_cut(hosts: Hosts) -> None:
    addressed(hosts)
    ends = hosts.data_plane("b"), "10.99.0.2", hosts.data_plane("a")
    assert talk(*ends) == "hello"
    hosts.cut("a", "b")
    assert talk(*ends, wait_s=0.5) == ""
    hosts.mend("b", "a")
    assert talk(*ends) == "hello"


DELAYED = """
nodes: [{name: a, cpu: 1, memory: 1Gi}, {name: b, cpu: 1, memory: 1Gi}]
links: [{src: a, dst: b, bandwidth: 10Mbit, delay: 10ms}]
"""
ECHO = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.bind((sys.argv[1], 7))
    print("bound", flush=True)
    while True:
        here.sendto(*here.recvfrom(100))
"""
ASK = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.settimeout(5)
    here.connect((sys.argv[1], 7))
    for _ in range(5):
        sent = time.monotonic()
        here.send(b"x")
        here.recv(100)
        print(time.monotonic() - sent)
"""


def addressed(hosts: Hosts) -> None:
    for node, peer, address in (("a", "b", "10.99.0.1"), ("b", "a", "10.99.0.2")):
        with routing(hosts.data_plane(node)) as ip:
            ip.addr("add", index=ip.link_lookup(ifname=link_device(peer))[0], address=address, prefixlen=24)


@pytest.mark.needs("taps")
def test_a_wire_with_a_delay_holds_what_it_carries_and_goes_with_the_hosts(cluster: str) -> None:
    hosts = Hosts(cluster, parse_topology(DELAYED, "test"))
    try:
        hosts.up()
        (keeper,) = keeps_delays(cluster)
        addressed(hosts)
        entered = [sys.executable, "-m", "ces_testbed.enter", hosts.data_plane("b"), sys.executable, "-c", ECHO]
        with subprocess.Popen([*entered, "10.99.0.2"], stdout=subprocess.PIPE, text=True) as echoing:
            try:
                assert echoing.stdout is not None
                echoing.stdout.readline()
                took = [float(line) for line in inside(hosts.data_plane("a"), ASK, "10.99.0.2").stdout.split()]
            finally:
                echoing.kill()
        assert len(took) == 5
        assert min(took) >= 0.020
        called = [sys.executable, "-m", "ces_testbed.delay_keeper", cluster, "0123456789ab"]
        elsewhere = [sys.executable, "-m", "ces_testbed.enter", hosts.data_plane("b")]
        with subprocess.Popen([*elsewhere, *called], stdin=subprocess.PIPE) as impostor:
            wait_for(lambda: psutil.Process(impostor.pid).cmdline() == called, "it is called like the wires' program")
            hosts.up()
            assert keeps_delays(cluster) == [keeper]
            impostor.kill()
        hosts.tear("b", "a")
        wait_for(lambda: not keeps_delays(cluster), "without a device there is no wire")
        hosts.up()
        assert keeps_delays(cluster)
    finally:
        hosts.down()
    assert keeps_delays(cluster) == traces(cluster) == []


def test_a_partition_cuts_a_host_off_and_healing_joins_it_again(hosts: Hosts) -> None:
    host, address = hosts.host_namespace("a"), hosts.address("a")
    assert talk(host, address, None) == "hello"
    hosts.partition("a")
    assert talk(host, address, None, wait_s=0.5) == ""
    hosts.heal("a")
    assert talk(host, address, None) == "hello"


def test_what_does_not_exist_is_named(hosts: Hosts) -> None:
    with pytest.raises(TestbedError, match="no node 'z'"):
        hosts.partition("z")
    with pytest.raises(TestbedError, match="no wire joins b and s"):
        hosts.cut("b", "s")
    with pytest.raises(TestbedError, match="no network namespace"), routing("ces-none-x") as ip:
        set_up(ip, "lo")


def test_two_clusters_have_subnets_of_their_own(hosts: Hosts) -> None:
    other = Hosts(hosts.cluster + "b", hosts.topology)
    try:
        other.up()
        assert other.gateway != hosts.gateway
        other.down()
        assert traces(hosts.cluster)
    finally:
        remove_hosts(hosts.cluster + "b")
