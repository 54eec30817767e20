"""The kernel objects that a node's desired network needs: a pure function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from ipaddress import IPv4Address

from ces_common.messages.desired import DesiredNetwork, Endpoint, LinkDevice, SubnetRoute
from ces_common.names import endpoint_device, link_device
from ces_edge_agent.dataplane.plan.class_numbers import LAST, class_numbers
from ces_edge_agent.dataplane.plan.objects import (
    ANYWHERE,
    MAIN_TABLE,
    Address,
    Device,
    KernelObject,
    Key,
    Route,
    Rule,
    Tunnel,
    WorkerEnd,
)
from ces_edge_agent.dataplane.plan.shaping import GSO_MAX, flow_shape, gso_size, link_shape, lowest_rates, probe_shape
from ces_edge_agent.ports import DataPlaneError

VXLAN_OVERHEAD = 50  # inner Ethernet header, outer IPv4, UDP and VXLAN headers
WIREGUARD_OVERHEAD = 80  # outer IPv6, UDP, WireGuard's header and tag; of IPv4's 20 bytes less, it needs 15 to pad
DEFAULT_MTU = 1500
NODE = ""  # owner of objects that concern every job

# Rules are tried in this order. The kernel's own rule for local addresses is moved behind the endpoints' rules, so that
# workers cannot reach their node, except those that read its data.
DATA_RULE = 90
ENDPOINT_RULE = 100
CONFINE_RULE = 200
POLICY_RULE = 300
LOCAL_RULE = 1000
LOCAL_TABLE = 255  # rt_tables(5): the node's own addresses


@dataclass(frozen=True)
class Facts:
    """Properties of the machine. ``mtu``: link device -> MTU; ``underlay``: remote host -> MTU of the path to it;
    ``own``: the host's addresses; ``sandboxes``: allocation -> the kernel's number of its namespace (-1: none yet);
    ``faults``: neighbour -> why the link to it cannot be encrypted, as it must be."""

    mtu: Mapping[str, int] = field(default_factory=dict)
    underlay: Mapping[str, int] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    sandboxes: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Derived:
    """``items``: the objects; ``owners``: who fails when one of them fails; ``common``: objects that do not depend on
    jobs; ``failed``: owner -> why its objects could not be derived."""

    items: dict[Key, KernelObject] = field(default_factory=dict)
    owners: dict[Key, set[str]] = field(default_factory=dict)
    common: set[Key] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, owner: str, items: Iterable[KernelObject]) -> None:
        """Add objects for an owner. If the iterable raises, the objects before are added."""
        for item in items:
            self.items[item.key] = item
            self.owners.setdefault(item.key, set()).add(owner)

    def fail(self, owner: str, reason: str) -> None:
        self.failed.setdefault(owner, reason)

    @property
    def shares(self) -> dict[Key, set[str]]:
        """The attempts that an object belongs to; none if it is common."""
        return {key: set() if key in self.common else owners for key, owners in self.owners.items()}


def derive(desired: DesiredNetwork, facts: Facts) -> Derived:
    """All kernel objects that the document asks for, given the machine's facts."""
    result = Derived()
    links = {link.peer: link for link in desired.links}
    mtus = {link.device: _link_mtu(link, facts) for link in desired.links}
    result.add(NODE, _node(desired, links, mtus, facts.own))
    users = {link.device: _users(desired, link.peer) for link in desired.links}
    for key, item in result.items.items():  # a missing link concerns only the jobs that use it
        device = item.name if isinstance(item, Device) else getattr(item, "device", "")
        result.owners[key] = users.get(device, {NODE})
    _add_subnets(result, (route for route in desired.subnets if not route.job), links)
    result.common = set(result.items)
    _add_subnets(result, (route for route in desired.subnets if route.job), links)

    for peer, reason in facts.faults.items():
        for owner in _users(desired, peer):
            result.fail(owner, f"the link to {peer} cannot be encrypted: {reason}")
    local = {endpoint.address: endpoint_device(endpoint.allocation) for endpoint in desired.endpoints}
    lowest = lowest_rates(desired.classes)
    mtu = min(mtus.values(), default=DEFAULT_MTU)
    for endpoint in desired.endpoints:
        sandbox = facts.sandboxes.get(endpoint.allocation)
        if sandbox is None:
            result.fail(endpoint.job, f"allocation {endpoint.allocation} has no network namespace to connect")
            continue
        rate = lowest.get(endpoint.address)
        gso = GSO_MAX if rate is None else gso_size(rate, mtu)
        try:
            result.add(endpoint.job, _endpoint(endpoint, sandbox, mtu, gso, links, local, desired.router))
        except DataPlaneError as error:
            result.fail(endpoint.job, str(error))

    for policy in desired.policies:
        if link := links.get(policy.via):
            table = address_table(link.gateway)
            result.add(policy.job, [Rule(POLICY_RULE, table, source=policy.src, destination=policy.dst)])
        else:
            result.fail(policy.job, f"no link to {policy.via}")
    numbers = class_numbers(desired.classes)
    for flow in desired.classes:
        if not (link := links.get(flow.via)):
            result.fail(flow.job, f"no link to {flow.via}")
        elif not (number := numbers.get((flow.via, flow.number))):
            result.fail(flow.job, f"more than {LAST} flows leave towards {flow.via}")
        else:
            result.add(flow.job, flow_shape(flow, link.device, mtus[link.device], number))
    return result


def _add_subnets(result: Derived, routes: Iterable[SubnetRoute], links: Mapping[str, LinkDevice]) -> None:
    for route in routes:
        owner = route.job or NODE
        if link := links.get(route.via):
            result.add(owner, [Route(MAIN_TABLE, route.subnet, link.device, link.gateway)])
        else:
            result.fail(owner, f"no link to {route.via}, on the way to {route.subnet}")


def address_table(address: str) -> int:
    """The routing table that belongs to a worker's or a neighbour's address. Addresses are unique within a cluster
    and above the kernel's own tables."""
    return int(IPv4Address(address))


def mac(owner: str, end: str) -> str:
    """A stable, locally administered MAC address. So both ends of a worker's veth know each other without ARP, and a
    neighbour still knows a tunnel that was recreated."""
    digest = blake2s(f"{end} {owner}".encode(), digest_size=5).hexdigest()
    return ":".join(["02", *(digest[place : place + 2] for place in range(0, 10, 2))])


def _users(desired: DesiredNetwork, peer: str) -> set[str]:
    """The attempts that use the link to a neighbour."""
    through = {policy.job for policy in desired.policies if policy.via == peer}
    through |= {flow.job for flow in desired.classes if flow.via == peer}
    through |= {route.job for route in desired.subnets if route.job and route.via == peer}
    return through | {end.job for end in desired.endpoints if any(route.via == peer for route in end.peers)}


def _link(links: Mapping[str, LinkDevice], peer: str) -> LinkDevice:
    try:
        return links[peer]
    except KeyError:
        raise DataPlaneError(f"no link to {peer}") from None


def _link_mtu(link: LinkDevice, facts: Facts) -> int:
    if link.vxlan is None:
        return facts.mtu.get(link.device, DEFAULT_MTU)
    if link.wireguard is not None:
        return encrypted_mtu(facts.underlay.get(link.wireguard.address, DEFAULT_MTU)) - VXLAN_OVERHEAD
    return facts.underlay.get(link.vxlan.remote, DEFAULT_MTU) - VXLAN_OVERHEAD


def encrypted_mtu(underlay: int) -> int:
    """The longest packet that WireGuard carries over a path with this MTU."""
    return underlay - WIREGUARD_OVERHEAD


def _node(
    desired: DesiredNetwork, links: Mapping[str, LinkDevice], mtus: Mapping[str, int], own: frozenset[str]
) -> Iterator[KernelObject]:
    yield Device("lo", "loopback", mtu=0)
    if desired.router:
        yield Address("lo", desired.router)
    for link in links.values():
        mtu = mtus[link.device]
        if link.vxlan is None:
            yield Device(link.device, "link", mtu)
        else:
            tunnel = Tunnel(
                link.vxlan.vni,
                link.vxlan.remote,
                link.vxlan.port,
                source=mac(link.peer, link_device(desired.node)),
                # Where an address is translated on the way, the host does not have it, and cannot send from it.
                local=link.vxlan.local if link.wireguard is None and link.vxlan.local in own else "",
                encrypted=link.wireguard is not None,
            )
            yield Device(link.device, "vxlan", mtu, mac=mac(desired.node, link.device), tunnel=tunnel)
        yield Route(address_table(link.gateway), ANYWHERE, link.device, link.gateway)
        yield from link_shape(link, mtu)
        if desired.router and link.gateway:
            yield from probe_shape(link, desired.router, mtu)


def _endpoint(
    endpoint: Endpoint,
    sandbox: int,
    mtu: int,
    gso: int,
    links: Mapping[str, LinkDevice],
    local: Mapping[str, str],
    router: str,
) -> Iterator[KernelObject]:
    """A worker's packets are looked up in a table of its own, which has routes to its peers and nothing else."""
    device = endpoint_device(endpoint.allocation)
    node_mac = mac(endpoint.allocation, "node")
    table = address_table(endpoint.address)
    yield Device(device, "endpoint", mtu, mac=node_mac, sandbox=sandbox)
    yield WorkerEnd(device, endpoint.address, mtu, gso, node_mac)
    yield Route(MAIN_TABLE, f"{endpoint.address}/32", device)
    yield Route(table, ANYWHERE)
    yield Rule(CONFINE_RULE, 0, device=device)
    yield Rule(ENDPOINT_RULE, table, device=device, source=endpoint.address)
    for peer in endpoint.peers:
        if peer.via is not None:
            link = _link(links, peer.via)
            yield Route(table, f"{peer.address}/32", link.device, link.gateway)
        elif peer.address == router:
            yield Rule(DATA_RULE, LOCAL_TABLE, device=device, source=endpoint.address, destination=router)
        elif peer.address in local:
            yield Route(table, f"{peer.address}/32", local[peer.address])
        else:
            raise DataPlaneError(f"peer {peer.address} is said to be on this node, but is not")
