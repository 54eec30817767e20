"""The wanted network of every node, from the committed state. Pure."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from hashlib import blake2s

from ces_common.composing import Composer
from ces_common.messages.records import JobRecord, LinkRecord, MediumRecord, NodeRecord, Topology
from ces_common.messages.wanted import (
    Endpoint,
    FlowClass,
    LinkDevice,
    NetworkWanted,
    PeerRoute,
    PolicyRoute,
    Reader,
    SubnetRoute,
    VxlanTunnel,
)
from ces_common.naming import link_device, router_address
from ces_common.shares import fitted, return_rate, unreserved_rate
from ces_common.states import JOB_PLACED, JobState
from ces_common.view import StateView
from ces_network_ctl.routing import Hops, next_hops, plain_path

LARGEST_VNI = (1 << 24) - 1


@dataclass(frozen=True, eq=False)
class Ground:
    """What every job's network stands on: the nodes, their documents without jobs, and the plain routes. ``wired``:
    links that share their medium with no other and carry what is configured: their sender alone sees whether there is
    room, and its envelope ends where the wire does. ``capacities``: what each link carries in bit/s."""

    epoch: str
    topology: Topology
    nodes: Mapping[str, NodeRecord]
    hops: Hops
    bases: Mapping[str, NetworkWanted]
    wired: Set[tuple[str, str]]
    capacities: Mapping[tuple[str, str], int]


@dataclass(eq=False)
class Parts:
    """What one job asks of one node."""

    endpoints: list[Endpoint] = field(default_factory=list)
    policies: list[PolicyRoute] = field(default_factory=list)
    classes: list[FlowClass] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)


def needs_network(job: JobRecord) -> bool:
    """A job keeps its network from its plan until the last of its workers is surely gone."""
    return job.state in JOB_PLACED or (job.state is not JobState.QUEUED and not job.released)


def involved_nodes(job: JobRecord) -> set[str]:
    """Every node on which the job's network depends: where its tasks are, and what its flows cross."""
    nodes = {allocation.node for allocation in job.allocations}
    for flow in job.reserved:
        nodes.update(flow.path)
    return nodes


class Planner:
    """The wanted network document of every known node. It remembers what did not change between two views, which
    never shows in the outcome. Generations are set when documents are written."""

    def __init__(self) -> None:
        self._composer = Composer[Ground, Parts, NetworkWanted](share_of, self._document)
        self._ground: Ground | None = None

    def plan(self, view: StateView) -> dict[str, NetworkWanted]:
        if self._ground is None or not _stands(self._ground, view):
            self._ground = ground_of(view)
        return self._composer.compose(self._ground, self._ground.bases, view.jobs.values())

    def _document(self, base: NetworkWanted, parts: Sequence[Parts]) -> NetworkWanted:
        assert self._ground is not None  # other capacities mean another ground, and that other bases
        return _document(base, parts, self._ground.capacities)


def plan_networks(view: StateView) -> dict[str, NetworkWanted]:
    """The wanted network document of every known node, with nothing remembered."""
    return Planner().plan(view)


def ground_of(view: StateView) -> Ground:
    nodes = dict(view.nodes)
    links = [link for link in view.topology.links if link.src in nodes and link.dst in nodes]
    hops = next_hops(link for link in links if link.up)  # devices stay in the documents: a link may come up again
    outgoing: dict[str, list[LinkRecord]] = defaultdict(list)
    for link in sorted(links, key=lambda link: link.dst):
        outgoing[link.src].append(link)
    capacities = {(link.src, link.dst): link.capacity for link in links}
    unreserved = _unreserved(links, view.topology.media)
    bases = {}
    for name, node in nodes.items():
        shaped = node.network == "tc"
        bases[name] = NetworkWanted(
            node=name,
            epoch=view.epoch,
            generation=view.version,
            mode=node.network,
            router=router_address(node.subnet),
            subnet=node.subnet,
            links=[
                _device(link, nodes, (link.dst, link.src) in capacities, unreserved[link.src, link.dst])
                for link in outgoing[name]
                if shaped
            ],
            subnets=_subnets(nodes, hops.get(name, {})) if shaped else [],
        )
    wired = frozenset((link.src, link.dst) for link in links if link.medium is None and link.capacity == link.bandwidth)
    return Ground(view.epoch, view.topology, nodes, hops, bases, wired, capacities)


def _unreserved(links: Sequence[LinkRecord], media: Iterable[MediumRecord]) -> dict[tuple[str, str], int]:
    """What all traffic without a reservation has of each link in bit/s. Links that share a medium have together what
    one of its capacity would have: each sender keeps to its own share, and sees nothing of the others'."""
    sharing = Counter(link.medium for link in links)
    parts = {medium.name: medium.bandwidth // max(sharing[medium.name], 1) for medium in media}
    return {
        (link.src, link.dst): unreserved_rate(min(link.capacity, parts.get(link.medium or "", link.capacity)))
        for link in links
    }


def _stands(ground: Ground, view: StateView) -> bool:
    """Whether nothing has changed but jobs, and what is no matter to networks."""
    return (
        ground.epoch == view.epoch
        and ground.topology is view.topology
        and ground.nodes.keys() == view.nodes.keys()
        and all(_network_of(node) == _network_of(ground.nodes[name]) for name, node in view.nodes.items())
    )


def _network_of(node: NodeRecord) -> tuple[str, str, str]:
    return node.network, node.subnet, node.host_address


def _subnets(nodes: Mapping[str, NodeRecord], hops: Mapping[str, str]) -> list[SubnetRoute]:
    return [
        SubnetRoute(subnet=nodes[target].subnet, via=via)
        for target, via in sorted(hops.items())
        if nodes[target].subnet
    ]


def share_of(job: JobRecord, ground: Ground) -> dict[str, Parts]:
    """What a job asks of each node."""
    parts: dict[str, Parts] = defaultdict(Parts)
    if needs_network(job) and job.allocations and involved_nodes(job) <= ground.nodes.keys():
        _add_job(job, ground, parts)
    return parts


def _document(base: NetworkWanted, parts: Sequence[Parts], capacities: Mapping[tuple[str, str], int]) -> NetworkWanted:
    rooms = {link.peer: capacities[base.node, link.peer] - link.unreserved for link in base.links}
    return base.model_copy(
        update={
            "endpoints": [endpoint for part in parts for endpoint in part.endpoints],
            "policies": [policy for part in parts for policy in part.policies],
            "classes": _within_links(rooms, [each for part in parts for each in part.classes]),
            "readers": [reader for part in parts for reader in part.readers],
        }
    )


def _within_links(rooms: Mapping[str, int], classes: list[FlowClass]) -> list[FlowClass]:
    """The classes with their return rates as wanted where a link has room for them beside its reservations and what
    reserved nothing, else with what room there is: leaves of HTB do not obey their parent's sum. ``rooms``: what each
    neighbour's link carries beside what reserved nothing, in bit/s."""
    for peer, most in rooms.items():
        here = [(at, each) for at, each in enumerate(classes) if each.via == peer]
        room = most - sum(each.rate for _, each in here if each.kind == "data")
        returns = [(at, each) for at, each in here if each.kind == "return"]
        rates = fitted([each.rate for _, each in returns], room)
        for (at, each), rate in zip(returns, rates, strict=True):
            if rate != each.rate:
                classes[at] = each.model_copy(update={"rate": rate})
    return classes


def _device(link: LinkRecord, nodes: Mapping[str, NodeRecord], two_way: bool, unreserved: int) -> LinkDevice:
    peer = nodes[link.dst]
    tunnel = None
    if link.kind == "vxlan":
        tunnel = VxlanTunnel(vni=_vni(link.src, link.dst), remote=peer.host_address)
    return LinkDevice(
        peer=link.dst,
        device=link_device(link.dst),
        kind=link.kind,
        bandwidth=link.bandwidth,
        unreserved=unreserved,
        gateway=router_address(peer.subnet),
        two_way=two_way,
        vxlan=tunnel,
    )


def _vni(one: str, other: str) -> int:
    """The same VXLAN network identifier on both sides of a wire."""
    digest = blake2s("\0".join(sorted((one, other))).encode(), digest_size=4).digest()
    return int.from_bytes(digest) % LARGEST_VNI + 1


def _add_job(job: JobRecord, ground: Ground, parts: dict[str, Parts]) -> None:
    places = {allocation.task: allocation.node for allocation in job.allocations}
    addresses = {allocation.task: allocation.address for allocation in job.allocations}
    sources = {flow.src: node for flow in job.flows if (node := flow.data_node) is not None}
    paths = _pair_paths(job, places | sources, ground.hops)
    addresses |= {source: router_address(ground.nodes[node].subnet) for source, node in sources.items()}
    reserved = {(flow.src, flow.dst) for flow in job.reserved}
    elastic = {(flow.src, flow.dst) for flow in job.flows if flow.mode == "elastic"}
    hosts = {allocation.task: allocation.address for allocation in job.allocations}
    for allocation in job.allocations:
        peers = []
        for peer in job.allocations:
            path = paths.get((allocation.task, peer.task))
            if peer is not allocation and path:
                peers.append(PeerRoute(address=peer.address, via=_first_hop(path)))
        for source in sources:
            path = paths.get((allocation.task, source))
            if (source, allocation.task) in reserved and path:
                peers.append(PeerRoute(address=addresses[source], via=_first_hop(path)))
        parts[allocation.node].endpoints.append(
            Endpoint(
                allocation=allocation.id,
                job=job.key,
                address=allocation.address,
                hostname=allocation.task,
                hosts=hosts,
                peers=peers,
            )
        )
    answers = {(flow.dst, flow.src) for flow in job.reserved}
    for src, dst in sorted(reserved | answers):
        path = paths.get((src, dst)) or []
        own_table = src not in sources  # a worker's first hop is in its own routing table; a node has none of its own
        for at, via in list(itertools.pairwise(path))[own_table:]:
            parts[at].policies.append(PolicyRoute(job=job.key, src=addresses[src], dst=addresses[dst], via=via))
    for flow in job.reserved:
        if not flow.bandwidth:  # nothing is promised to it now: what it sends shares what reserved nothing
            continue
        source, target = addresses[flow.src], addresses[flow.dst]
        most = flow.max if (flow.src, flow.dst) in elastic and flow.max > flow.bandwidth else None
        for at, via in zip(flow.path, flow.path[1:], strict=False):
            parts[at].classes.append(
                FlowClass(
                    job=job.key,
                    number=flow.number,
                    kind="data",
                    via=via,
                    src=source,
                    dst=target,
                    rate=flow.bandwidth,
                    ceiling=most if (at, via) in ground.wired else None,
                )
            )
        back = paths.get((flow.dst, flow.src)) or []
        for at, via in itertools.pairwise(back):
            parts[at].classes.append(
                FlowClass(
                    job=job.key,
                    number=flow.number,
                    kind="return",
                    via=via,
                    src=target,
                    dst=source,
                    rate=return_rate(flow.bandwidth),
                    ceiling=return_rate(most) if most and (at, via) in ground.wired else None,
                    # What else is sent back would delay the acknowledgements, and so the flow; to a node nothing is
                    # sent but requests, which are larger and must get through as well.
                    small_only=flow.src not in sources,
                )
            )
    for asked in job.flows:
        if asked.src in sources and asked.dst in addresses:
            reader = Reader(job=job.key, address=addresses[asked.dst], datasets=asked.datasets)
            parts[sources[asked.src]].readers.append(reader)


def _first_hop(path: list[str]) -> str | None:
    return path[1] if len(path) > 1 else None


def _pair_paths(job: JobRecord, places: Mapping[str, str], hops: Hops) -> dict[tuple[str, str], list[str]]:
    """The path of every ordered pair of ends, whose nodes are ``places``: reserved flows as planned; what answers them
    back along the same nodes where links allow; everything else by plain routes."""
    paths = {(flow.src, flow.dst): list(flow.path) for flow in job.reserved}
    for flow in job.reserved:
        back = list(reversed(flow.path))
        pair = (flow.dst, flow.src)
        if pair not in paths and all(_linked(hops, a, b) for a, b in itertools.pairwise(back)):
            paths[pair] = back
    for src, one in places.items():
        for dst, other in places.items():
            if src != dst and (src, dst) not in paths:
                path = plain_path(hops, one, other)
                if path is not None:
                    paths[(src, dst)] = path
    return paths


def _linked(hops: Hops, src: str, dst: str) -> bool:
    """Whether a link leads from one node straight to the other: then that is the shortest path."""
    return hops.get(src, {}).get(dst) == dst
