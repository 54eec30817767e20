"""Names and addresses of a testbed: short enough, told apart, colliding with nothing."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from ces_common.names import DEVICE_LENGTH
from ces_testbed import addressing
from ces_testbed.addressing import POOL, NoSubnet, choose_subnet


@pytest.mark.parametrize("hosts", [1, 7, 250])
def test_a_subnet_holds_all_hosts_and_the_bridge(hosts: int) -> None:
    subnet = choose_subnet("demo", hosts, [])
    assert subnet.subnet_of(POOL)
    last = addressing.host_address(subnet, hosts - 1).ip
    assert last in subnet
    assert last != subnet.broadcast_address
    assert addressing.bridge_address(subnet).ip < addressing.host_address(subnet, 0).ip


def test_what_is_taken_is_avoided() -> None:
    first = choose_subnet("demo", 7, [])
    assert choose_subnet("demo", 7, [first, IPv4Network("10.0.0.0/8")]) != first


def test_the_search_goes_around_the_pool() -> None:
    free = IPv4Network("198.18.0.0/24")
    taken = [subnet for subnet in POOL.subnets(new_prefix=24) if subnet != free]
    assert choose_subnet("demo", 7, taken) == free


def test_a_full_pool_is_told() -> None:
    with pytest.raises(NoSubnet, match="in use"):
        choose_subnet("demo", 7, [IPv4Network("198.16.0.0/12")])


def test_devices_fit_and_begin_alike() -> None:
    for device in (addressing.bridge_device("a" * 16), addressing.management_device("a" * 16, "n" * 63)):
        assert len(device) <= DEVICE_LENGTH
        assert device.startswith(addressing.device_prefix("a" * 16))


def test_a_namespace_tells_its_cluster() -> None:
    assert addressing.cluster_of(addressing.host_namespace("lab", "n-1")) == "lab"
    assert addressing.cluster_of(addressing.data_plane("lab", "n1")) == "lab"
    assert [addressing.cluster_of(name) for name in ("ces", "ces-", "other-lab-n1", "ces-Lab-n1", "ces-lab")] == [
        None
    ] * 5


@pytest.mark.parametrize("name", ["", "a-b", "A", "x" * 17, "a/b", "*"])
def test_a_cluster_name_is_plain(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a cluster"):
        addressing.check_cluster(name)
