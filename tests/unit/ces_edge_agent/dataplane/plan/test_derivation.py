from __future__ import annotations

from typing import Any

import pytest

from ces_common.messages.desired import (
    DesiredNetwork,
    EncryptedTunnel,
    Endpoint,
    FlowClass,
    LinkDevice,
    PeerRoute,
    PolicyRoute,
    SubnetRoute,
    VxlanTunnel,
)
from ces_common.names import endpoint_device
from ces_edge_agent.dataplane.plan import class_numbers
from ces_edge_agent.dataplane.plan.derivation import Facts, address_table, derive
from ces_edge_agent.dataplane.plan.objects import Address, Device, Route, Rule, ShapedClass, WorkerEnd
from ces_edge_agent.dataplane.plan.shaping import is_of_flow

LINK = LinkDevice(
    peer="n2", device="to-n2", kind="veth", bandwidth=100_000_000, best_effort=5_000_000, gateway="10.2.0.1"
)
ENDPOINT = Endpoint(
    allocation="one",
    job="a.1",
    address="10.1.0.2",
    hostname="worker-0",
    peers=[PeerRoute(address="10.2.0.2", via="n2"), PeerRoute(address="10.1.0.3")],
)
LOCAL_PEER = ENDPOINT.model_copy(update={"allocation": "two", "address": "10.1.0.3", "peers": []})
FACTS = Facts(mtu={"to-n2": 1500}, sandboxes={"one": 4, "two": 5})
ONE = endpoint_device("one")


def document(**parts: Any) -> DesiredNetwork:
    base: dict[str, Any] = {
        "node": "n1",
        "generation": 1,
        "router": "10.1.0.1",
        "subnet": "10.1.0.0/24",
        "links": [LINK],
        "subnets": [SubnetRoute(subnet="10.2.0.0/24", via="n2")],
        "endpoints": [ENDPOINT, LOCAL_PEER],
    }
    return DesiredNetwork(**(base | parts))


def flow(**parts: Any) -> FlowClass:
    base: dict[str, Any] = {
        "job": "a.1", "number": 1, "kind": "data", "via": "n2", "src": "10.1.0.2", "dst": "10.2.0.2", "rate": 8_000_000,
    }  # fmt: skip
    return FlowClass(**(base | parts))


def test_a_node_has_its_address_its_links_and_routes_to_all_subnets() -> None:
    derived = derive(document(endpoints=[]), FACTS)
    items = set(derived.items.values())
    assert derived.failed == {}
    assert {
        Address("lo", "10.1.0.1"),
        Device("to-n2", "link", 1500),
        Route(254, "10.2.0.0/24", "to-n2", "10.2.0.1"),
    } <= items
    assert all(owners <= {""} for owners in derived.owners.values())


def test_a_worker_may_reach_its_peers_and_nothing_else() -> None:
    derived = derive(document(), FACTS)
    table = address_table("10.1.0.2")
    routes = {item for item in derived.items.values() if isinstance(item, Route) and item.table == table}
    assert routes == {
        Route(table, "0.0.0.0/0"),
        Route(table, "10.2.0.2/32", "to-n2", "10.2.0.1"),
        Route(table, "10.1.0.3/32", endpoint_device("two")),
    }
    rules = {item for item in derived.items.values() if isinstance(item, Rule) and item.device == ONE}
    assert rules == {Rule(100, table, device=ONE, source="10.1.0.2"), Rule(200, 0, device=ONE)}
    assert derived.owners[Device(ONE, "endpoint", 1500).key] == {"a.1"}


def test_a_worker_beside_the_data_that_it_reads_may_reach_its_node() -> None:
    reader = ENDPOINT.model_copy(update={"peers": [PeerRoute(address="10.1.0.1")]})
    derived = derive(document(endpoints=[reader, LOCAL_PEER]), FACTS)
    assert derived.failed == {}
    rules = [item for item in derived.items.values() if isinstance(item, Rule) and item.destination == "10.1.0.1"]
    # Before the rule that confines it; the table of the node's own addresses, for this worker and this address alone.
    assert rules == [Rule(90, 255, device=ONE, source="10.1.0.2", destination="10.1.0.1")]


def test_what_passes_through_follows_its_policy() -> None:
    policy = PolicyRoute(job="b.1", src="10.5.0.2", dst="10.6.0.2", via="n2")
    derived = derive(document(endpoints=[], policies=[policy]), FACTS)
    table = address_table("10.2.0.1")
    rule = Rule(300, table, source="10.5.0.2", destination="10.6.0.2")
    assert derived.owners[rule.key] == {"b.1"}
    assert Route(table, "0.0.0.0/0", "to-n2", "10.2.0.1") in derived.items.values()


def test_tunnels_take_their_overhead_from_every_worker() -> None:
    link = LINK.model_copy(update={"kind": "vxlan", "vxlan": VxlanTunnel(vni=9, remote="192.0.2.7")})
    derived = derive(document(links=[link]), Facts(underlay={"192.0.2.7": 1400}, sandboxes=FACTS.sandboxes))
    device, end = derived.items["device", "to-n2"], derived.items["worker", ONE]
    assert isinstance(device, Device)
    assert isinstance(end, WorkerEnd)
    assert device.tunnel is not None
    assert (device.kind, device.mtu, device.tunnel.remote) == ("vxlan", 1350, "192.0.2.7")
    assert device.mac.startswith("02:"), "neighbours must know it again when it was recreated"
    assert end.mtu == 1350


def test_a_tunnel_lets_in_its_neighbours_end_alone() -> None:
    """Both nodes derive the same address of it."""
    ours = LINK.model_copy(update={"kind": "vxlan", "vxlan": VxlanTunnel(vni=9, remote="192.0.2.7")})
    theirs = ours.model_copy(update={"peer": "n1", "device": "to-n1", "gateway": "10.1.0.1"})
    near = derive(document(links=[ours]), FACTS).items["device", "to-n2"]
    far = derive(DesiredNetwork(node="n2", generation=1, links=[theirs]), Facts()).items["device", "to-n1"]
    assert isinstance(near, Device)
    assert isinstance(far, Device)
    assert near.tunnel is not None
    assert far.tunnel is not None
    assert (near.tunnel.source, far.tunnel.source) == (far.mac, near.mac)
    assert not near.tunnel.encrypted


@pytest.mark.parametrize(("own", "local"), [({"192.0.2.1", "192.0.2.99"}, "192.0.2.1"), ({"192.168.0.1"}, "")])
def test_a_tunnel_sends_from_the_address_that_its_neighbour_knows_if_the_host_has_it(own: set[str], local: str) -> None:
    """Where it is translated on the way, the host has another."""
    tunnel = VxlanTunnel(vni=9, remote="192.0.2.7", local="192.0.2.1")
    link = LINK.model_copy(update={"kind": "vxlan", "vxlan": tunnel})
    device = derive(document(links=[link]), Facts(own=frozenset(own))).items["device", "to-n2"]
    assert isinstance(device, Device)
    assert device.tunnel is not None
    assert device.tunnel.local == local


def test_what_is_encrypted_has_shorter_packets_and_travels_to_the_neighbours_own_address() -> None:
    tunnel = VxlanTunnel(vni=9, remote="10.2.0.1")
    wireguard = EncryptedTunnel(keys=[], address="192.0.2.7", port=51872)
    link = LINK.model_copy(update={"kind": "wireguard", "vxlan": tunnel, "wireguard": wireguard})
    facts = Facts(underlay={"192.0.2.7": 1500}, sandboxes=FACTS.sandboxes, faults={"n2": "n2 has told no key"})
    derived = derive(document(links=[link], classes=[flow()]), facts)
    device = derived.items["device", "to-n2"]
    assert isinstance(device, Device)
    assert device.tunnel is not None
    assert (device.mtu, device.tunnel.encrypted, device.tunnel.remote) == (1370, True, "10.2.0.1")
    assert derived.failed == {flow().job: "the link to n2 cannot be encrypted: n2 has told no key"}


@pytest.mark.parametrize(("rate", "gso"), [(10_000_000, 6250), (100_000, 3000), (1_000_000_000, 65536)])
def test_slow_senders_send_in_small_bursts(rate: int, gso: int) -> None:
    end = derive(document(classes=[flow(rate=rate)]), FACTS).items["worker", ONE]
    assert isinstance(end, WorkerEnd)
    assert end.gso == gso


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"classes": [flow(via="n9")]}, "no link to n9"),
        ({"policies": [PolicyRoute(job="a.1", src="10.1.0.2", dst="10.2.0.2", via="n9")]}, "no link to n9"),
        ({"endpoints": [ENDPOINT]}, "10.1.0.3"),
        ({"endpoints": [LOCAL_PEER.model_copy(update={"allocation": "lost"})]}, "lost has no network namespace"),
    ],
)
def test_a_job_fails_for_what_it_cannot_have(parts: dict[str, Any], reason: str) -> None:
    failed = derive(document(**parts), FACTS).failed
    assert set(failed) == {"a.1"}
    assert reason in failed["a.1"]


def test_a_flow_for_which_a_device_has_no_class_left_fails_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_numbers, "LAST", 2)
    flows = [flow(number=1), flow(number=2, dst="10.2.0.4"), flow(job="b.1", number=3, dst="10.2.0.3")]
    derived = derive(document(classes=flows), FACTS)
    assert set(derived.failed) == {"b.1"}
    assert "flows leave towards n2" in derived.failed["b.1"]


def test_a_flow_of_any_number_has_classes_of_its_own() -> None:
    far = 5 + 3 * class_numbers.LAST
    derived = derive(document(classes=[flow(number=5), flow(job="b.1", number=far, dst="10.2.0.3")]), FACTS)
    assert derived.failed == {}
    minors = {item.minor for key, item in derived.items.items() if isinstance(item, ShapedClass) and is_of_flow(item)}
    assert len(minors) == 2


def test_an_unknown_way_to_a_subnet_fails_the_node() -> None:
    failed = derive(document(subnets=[SubnetRoute(subnet="10.9.0.0/24", via="n9")]), FACTS).failed
    assert set(failed) == {""}


def test_every_shared_object_has_all_its_owners() -> None:
    derived = derive(document(classes=[flow(), flow(job="b.1", number=2, dst="10.2.0.3")]), FACTS)
    assert derived.owners["class", "to-n2", 2] == {"a.1"}
    assert derived.owners["class", "to-n2", 4] == {"b.1"}
    assert isinstance(derived.items["class", "to-n2", 4], ShapedClass)


def test_a_link_is_a_matter_of_the_jobs_that_use_it() -> None:
    other = LINK.model_copy(update={"peer": "n3", "device": "to-n3", "gateway": "10.3.0.1"})
    derived = derive(document(links=[LINK, other], classes=[flow(job="b.1", via="n3")]), FACTS)
    assert derived.owners["device", "to-n2"] == {"a.1"}
    assert derived.owners["device", "to-n3"] == {"b.1"}
    assert derived.owners["device", "lo"] == {""}
    assert derived.owners["route", 254, "10.2.0.0/24"] == {""}, "plain routes serve everybody"
    assert derive(document(endpoints=[]), FACTS).owners["device", "to-n2"] == set()
