"""The desired network of every node, from the committed state. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from hashlib import blake2s

from ces_common.composer import Composer
from ces_common.messages.desired import (
    DesiredNetwork,
    EncryptedTunnel,
    FlowClass,
    LinkDevice,
    SubnetRoute,
    VxlanTunnel,
)
from ces_common.messages.records import JobRecord, LinkRecord, MediumRecord, NodeRecord
from ces_common.names import link_device, router_address
from ces_common.shares import best_effort_rate, fitted
from ces_common.state_view import StateView
from ces_network_ctl.job_network import (
    Addressing,
    NetworkContext,
    Parts,
    asks_alike,
    ends_of,
    share_of,
    surely_asks_the_same,
)
from ces_network_ctl.plain_routes import PlainRoutes

LARGEST_VNI = (1 << 24) - 1
Encryption = tuple[tuple[str, ...], int]
"""By which keys a node encrypts links, and the port of its host where it takes their packets."""


class Planner:
    """The desired network document of every known node. It remembers what did not change between two views, which
    never shows in the outcome. Generations are set when documents are written. With ten thousand nodes the first plan
    takes seconds: not for an event loop."""

    def __init__(self) -> None:
        self._composer = Composer[NetworkContext, Parts, DesiredNetwork](
            share_of, self._document, surely_asks_the_same, asks_alike
        )
        self._context: NetworkContext | None = None

    def plan(self, view: StateView) -> dict[str, DesiredNetwork]:
        if self._context is None or not _still_holds(self._context, view):
            self._context = context_of(view, self._context)
        return self._composer.compose(self._context, self._context.bases, view.jobs.values())

    def nodes_of(self, job: JobRecord) -> Set[str] | None:
        """The nodes with a part in this attempt's network in the last plan; None if it was not planned yet."""
        return self._composer.nodes_of(job)

    def _document(self, base: DesiredNetwork, parts: Sequence[Parts]) -> DesiredNetwork:
        assert self._context is not None  # other capacities mean another context, and that other bases
        return _document(base, parts, self._context.capacities)


def context_of(view: StateView, before: NetworkContext | None = None) -> NetworkContext:
    """What jobs' networks are planned on in this state. ``before``: that of an earlier state, of which everything is
    taken over that did not change."""
    nodes = dict(view.nodes)
    links = [link for link in view.topology.links if link.src in nodes and link.dst in nodes]
    up = [link for link in links if link.up]  # devices stay in the documents: a link may come up again
    wanted = {end for job in view.jobs.values() for end in ends_of(job)}
    routes = PlainRoutes(up, None if before is None else before.routes, wanted)
    capacities = {(link.src, link.dst): link.capacity for link in links}
    addressing: Mapping[str, Addressing] = {name: _addressing(node) for name, node in nodes.items()}
    bases, made_of = _bases(view, links, addressing, before)
    wired: Set[tuple[str, str]] = frozenset(
        (link.src, link.dst) for link in links if link.medium is None and link.capacity == link.bandwidth
    )
    if before is not None:  # so that jobs can tell by a glance that these are the same
        addressing = before.addressing if before.addressing == addressing else addressing
        wired = before.wired if before.wired == wired else wired
    return NetworkContext(
        epoch=view.epoch,
        topology=view.topology,
        nodes=nodes,
        addressing=addressing,
        routes=routes,
        bases=bases,
        wired=wired,
        capacities=capacities,
        made_of=made_of,
    )


def _bases(
    view: StateView, links: Sequence[LinkRecord], addressing: Mapping[str, Addressing], before: NetworkContext | None
) -> tuple[dict[str, DesiredNetwork], dict[str, tuple[object, ...]]]:
    """Every node's document without jobs, and what it was made of: the former one where that is the same."""
    outgoing: dict[str, list[LinkRecord]] = defaultdict(list)
    for link in sorted(links, key=lambda link: link.dst):
        outgoing[link.src].append(link)
    ends = {(link.src, link.dst) for link in links}
    best_effort = _best_effort_rates(links, view.topology.media)
    bases: dict[str, DesiredNetwork] = {}
    made_of: dict[str, tuple[object, ...]] = {}
    for name, node in view.nodes.items():
        if node.region is not None:  # nobody there reads a document of ours
            continue
        devices = [
            (
                link,
                addressing[link.dst],
                _encryption(view.nodes[link.dst]),
                (link.dst, link.src) in ends,
                best_effort[link.src, link.dst],
            )
            for link in outgoing[name]
            if node.network == "tc"
        ]
        told = [(_device_part(link), *others) for link, *others in devices]
        made_of[name] = view.epoch, addressing[name], node.link_keys, *told
        if before is not None and before.made_of.get(name) == made_of[name]:
            bases[name] = before.bases[name]
            continue
        bases[name] = DesiredNetwork(
            node=name,
            epoch=view.epoch,
            generation=view.version,
            mode=node.network,
            router=router_address(node.subnet),
            subnet=node.subnet,
            link_keys=node.link_keys,
            links=[_device(node.host_address, *device) for device in devices],
            subnets=[
                SubnetRoute(subnet=subnet, via=link.dst) for link, (_, subnet, *_), *_ in devices if link.up and subnet
            ],
        )
    return bases, made_of


def _device_part(link: LinkRecord) -> tuple[object, ...]:
    """What documents say of a link, without how it was measured."""
    return link.dst, link.kind, link.bandwidth, link.capacity, link.up


def _best_effort_rates(links: Sequence[LinkRecord], media: Iterable[MediumRecord]) -> dict[tuple[str, str], int]:
    """The rate in bit/s of each link's best-effort class. Links that share a medium get equal parts of what one link of
    its capacity would have, since no sender sees the others' traffic."""
    sharing = Counter(link.medium for link in links)
    parts = {medium.name: medium.bandwidth // max(sharing[medium.name], 1) for medium in media}
    return {
        (link.src, link.dst): best_effort_rate(min(link.capacity, parts.get(link.medium or "", link.capacity)))
        for link in links
    }


def _still_holds(context: NetworkContext, view: StateView) -> bool:
    """Whether only jobs have changed, or what is no concern of networks."""
    return (
        context.epoch == view.epoch
        and context.topology is view.topology
        and context.nodes.keys() == view.nodes.keys()
        and all(
            _addressing(node) == context.addressing[name] and _encryption(node) == _encryption(context.nodes[name])
            for name, node in view.nodes.items()
        )
    )


def _addressing(node: NodeRecord) -> Addressing:
    return node.network, node.subnet, node.host_address, node.public_key


def _encryption(node: NodeRecord) -> Encryption:
    return tuple(node.link_keys), node.link_port


def _document(
    base: DesiredNetwork, parts: Sequence[Parts], capacities: Mapping[tuple[str, str], int]
) -> DesiredNetwork:
    rooms = {link.peer: capacities[base.node, link.peer] - link.best_effort for link in base.links}
    return base.model_copy(
        update={
            "endpoints": [endpoint for part in parts for endpoint in part.endpoints],
            "policies": [policy for part in parts for policy in part.policies],
            "classes": _within_links(rooms, [each for part in parts for each in part.classes]),
            "readers": [reader for part in parts for reader in part.readers],
            "checkpoint_readers": [reader for part in parts for reader in part.checkpoint_readers],
            "subnets": [*base.subnets, *(route for part in parts for route in part.subnets)],
        }
    )


def _within_links(rooms: Mapping[str, int], classes: list[FlowClass]) -> list[FlowClass]:
    """The classes with the rates of return classes lowered where a link has no room for all of them beside its
    reservations: HTB leaves do not obey their parent's sum. ``rooms``: bit/s that each neighbour's link carries beside
    its best-effort class."""
    here: dict[str, list[int]] = defaultdict(list)  # neighbour -> the classes towards it, by index
    for at, each in enumerate(classes):
        here[each.via].append(at)
    for peer, found in here.items():
        if peer not in rooms:
            continue
        room = rooms[peer] - sum(classes[at].rate for at in found if classes[at].kind == "data")
        returns = [at for at in found if classes[at].kind == "return"]
        rates = fitted([classes[at].rate for at in returns], room)
        for at, rate in zip(returns, rates, strict=True):
            if rate != classes[at].rate:
                classes[at] = classes[at].model_copy(update={"rate": rate})
    return classes


def _device(
    own_host: str, link: LinkRecord, peer: Addressing, encryption: Encryption, two_way: bool, best_effort: int
) -> LinkDevice:
    _, subnet, host_address, _ = peer
    keys, port = encryption
    tunnel = encrypted = None
    if link.kind == "vxlan":
        tunnel = VxlanTunnel(vni=_vni(link.src, link.dst), remote=host_address, local=own_host)
    elif link.kind == "wireguard":
        tunnel = VxlanTunnel(vni=_vni(link.src, link.dst), remote=router_address(subnet))
        encrypted = EncryptedTunnel(keys=list(keys), address=host_address, port=port)
    return LinkDevice(
        peer=link.dst,
        device=link_device(link.dst),
        kind=link.kind,
        bandwidth=link.bandwidth,
        best_effort=best_effort,
        gateway=router_address(subnet),
        two_way=two_way,
        vxlan=tunnel,
        wireguard=encrypted,
    )


def _vni(one: str, other: str) -> int:
    """The same VXLAN network identifier on both sides of a wire."""
    digest = blake2s("\0".join(sorted((one, other))).encode(), digest_size=4).digest()
    return int.from_bytes(digest) % LARGEST_VNI + 1
