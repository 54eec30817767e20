"""From a node's wanted network to the kernel objects that make it: a pure function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from ipaddress import IPv4Address

from ces_common.messages.wanted import Endpoint, LinkDevice, NetworkWanted
from ces_common.naming import endpoint_device
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.objects import (
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
from ces_edge_agent.dataplane.probe_shape import probe_shape
from ces_edge_agent.dataplane.shaping import GSO_MAX, flow_shape, gso_size, link_shape, lowest_rates

VXLAN_OVERHEAD = 50  # outer Ethernet, IPv4, UDP and VXLAN headers
DEFAULT_MTU = 1500
NODE = ""  # the owner of what concerns every job

# Rules are tried in this order. The kernel's own rule for local addresses is moved behind those of the endpoints, so
# that a worker cannot reach its node, but for one that reads its data.
DATA_RULE = 90
ENDPOINT_RULE = 100
CONFINE_RULE = 200
POLICY_RULE = 300
LOCAL_RULE = 1000
LOCAL_TABLE = 255  # rt_tables(5): the node's own addresses


@dataclass(frozen=True)
class Facts:
    """What must be known of the machine. ``mtu``: of the link devices that exist; ``underlay``: remote host -> MTU on
    the way to it; ``holders``: allocation -> kernel's number of its namespace (-1: none yet)."""

    mtu: Mapping[str, int] = field(default_factory=dict)
    underlay: Mapping[str, int] = field(default_factory=dict)
    holders: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Derived:
    """The objects, who fails when one of them fails, and what could not be derived. ``common``: what is there whoever
    needs it."""

    items: dict[Key, KernelObject] = field(default_factory=dict)
    owners: dict[Key, set[str]] = field(default_factory=dict)
    common: set[Key] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, owner: str, items: Iterable[KernelObject]) -> None:
        """Raises what the items' making raises, having added those before."""
        for item in items:
            self.items[item.key] = item
            self.owners.setdefault(item.key, set()).add(owner)

    def fail(self, owner: str, reason: str) -> None:
        self.failed.setdefault(owner, reason)

    @property
    def shares(self) -> dict[Key, set[str]]:
        """Whose an object is; nobody's where it is common."""
        return {key: set() if key in self.common else owners for key, owners in self.owners.items()}


def derive(wanted: NetworkWanted, facts: Facts) -> Derived:
    result = Derived()
    links = {link.peer: link for link in wanted.links}
    mtus = {link.device: _link_mtu(link, facts) for link in wanted.links}
    result.add(NODE, _node(wanted, links, mtus))
    users = {link.device: _users(wanted, link.peer) for link in wanted.links}
    for key, item in result.items.items():  # a link that is not there is no matter of jobs that do not use it
        device = item.name if isinstance(item, Device) else getattr(item, "device", "")
        result.owners[key] = users.get(device, {NODE})
    for subnet in wanted.subnets:
        if link := links.get(subnet.via):
            result.add(NODE, [Route(MAIN_TABLE, subnet.subnet, link.device, link.gateway)])
        else:
            result.fail(NODE, f"no link to {subnet.via}, on the way to {subnet.subnet}")
    result.common = set(result.items)

    local = {endpoint.address: endpoint_device(endpoint.allocation) for endpoint in wanted.endpoints}
    lowest = lowest_rates(wanted.classes)
    mtu = min(mtus.values(), default=DEFAULT_MTU)
    for endpoint in wanted.endpoints:
        holder = facts.holders.get(endpoint.allocation)
        if holder is None:
            result.fail(endpoint.job, f"allocation {endpoint.allocation} has no network namespace to connect")
            continue
        rate = lowest.get(endpoint.address)
        gso = GSO_MAX if rate is None else gso_size(rate, mtu)
        try:
            result.add(endpoint.job, _endpoint(endpoint, holder, mtu, gso, links, local, wanted.router))
        except DataPlaneError as error:
            result.fail(endpoint.job, str(error))

    for policy in wanted.policies:
        if link := links.get(policy.via):
            table = address_table(link.gateway)
            result.add(policy.job, [Rule(POLICY_RULE, table, source=policy.src, destination=policy.dst)])
        else:
            result.fail(policy.job, f"no link to {policy.via}")
    for flow in wanted.classes:
        try:
            link = _link(links, flow.via)
            result.add(flow.job, flow_shape(flow, link.device, mtus[link.device]))
        except DataPlaneError as error:
            result.fail(flow.job, str(error))
    return result


def address_table(address: str) -> int:
    """The routing table that belongs to a worker's or a neighbour's address. Addresses are unique within a cluster
    and above the kernel's own tables."""
    return int(IPv4Address(address))


def mac(owner: str, end: str) -> str:
    """A stable, locally administered address: both ends of a worker's veth know each other without asking, and a
    neighbour still knows a tunnel that was made anew."""
    digest = blake2s(f"{end} {owner}".encode(), digest_size=5).hexdigest()
    return ":".join(["02", *(digest[place : place + 2] for place in range(0, 10, 2))])


def _users(wanted: NetworkWanted, peer: str) -> set[str]:
    """The attempts that use the link to a neighbour."""
    through = {policy.job for policy in wanted.policies if policy.via == peer}
    through |= {flow.job for flow in wanted.classes if flow.via == peer}
    return through | {end.job for end in wanted.endpoints if any(route.via == peer for route in end.peers)}


def _link(links: Mapping[str, LinkDevice], peer: str) -> LinkDevice:
    try:
        return links[peer]
    except KeyError:
        raise DataPlaneError(f"no link to {peer}") from None


def _link_mtu(link: LinkDevice, facts: Facts) -> int:
    if link.vxlan is None:
        return facts.mtu.get(link.device, DEFAULT_MTU)
    return facts.underlay.get(link.vxlan.remote, DEFAULT_MTU) - VXLAN_OVERHEAD


def _node(wanted: NetworkWanted, links: Mapping[str, LinkDevice], mtus: Mapping[str, int]) -> Iterator[KernelObject]:
    yield Device("lo", "loopback", mtu=0)
    if wanted.router:
        yield Address("lo", wanted.router)
    for link in links.values():
        mtu = mtus[link.device]
        if link.vxlan is None:
            yield Device(link.device, "link", mtu)
        else:
            tunnel = Tunnel(link.vxlan.vni, link.vxlan.remote, link.vxlan.port)
            yield Device(link.device, "vxlan", mtu, mac=mac(wanted.node, link.device), tunnel=tunnel)
        yield Route(address_table(link.gateway), ANYWHERE, link.device, link.gateway)
        yield from link_shape(link, mtu)
        if wanted.router and link.gateway:
            yield from probe_shape(link, wanted.router, mtu)


def _endpoint(
    endpoint: Endpoint,
    holder: int,
    mtu: int,
    gso: int,
    links: Mapping[str, LinkDevice],
    local: Mapping[str, str],
    router: str,
) -> Iterator[KernelObject]:
    """What comes from a worker is looked up in its own table, which knows its peers and nothing else."""
    device = endpoint_device(endpoint.allocation)
    node_mac = mac(endpoint.allocation, "node")
    table = address_table(endpoint.address)
    yield Device(device, "endpoint", mtu, mac=node_mac, holder=holder)
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
