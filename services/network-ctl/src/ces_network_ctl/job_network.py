"""What one job asks of the network of each node: its workers' routes, its flows' policy routes and classes. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from itertools import pairwise

from ces_common.checkpoint_places import transfers
from ces_common.messages.desired import (
    CheckpointReader,
    DesiredNetwork,
    Endpoint,
    FlowClass,
    PeerRoute,
    PolicyRoute,
    Reader,
    SubnetRoute,
)
from ces_common.messages.records import FlowRecord, JobRecord, Moving, NodeRecord, Topology
from ces_common.names import router_address
from ces_common.shares import return_rate
from ces_common.states import JOB_PLACED, JobState
from ces_network_ctl.plain_routes import PlainRoutes

Addressing = tuple[str, str, str, str]
"""A node's network mode, the subnet of its workers, its own address, and the public key with which it joined."""


@dataclass(frozen=True, eq=False)
class NetworkContext:
    """What every job's network is planned on: nodes, their documents without jobs, plain routes, and what each link
    carries in bit/s (``capacities``).

    ``wired``: links that share their medium with no other and carry what is configured. Only their sender can see
    whether there is room to borrow. ``made_of``: node -> everything that its document without jobs was made of."""

    epoch: str
    topology: Topology
    nodes: Mapping[str, NodeRecord]
    addressing: Mapping[str, Addressing]
    routes: PlainRoutes
    bases: Mapping[str, DesiredNetwork]
    wired: Set[tuple[str, str]]
    capacities: Mapping[tuple[str, str], int]
    made_of: Mapping[str, tuple[object, ...]]


@dataclass(eq=False)
class Parts:
    """What one job asks of one node."""

    endpoints: list[Endpoint] = field(default_factory=list)
    policies: list[PolicyRoute] = field(default_factory=list)
    classes: list[FlowClass] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    checkpoint_readers: list[CheckpointReader] = field(default_factory=list)
    subnets: list[SubnetRoute] = field(default_factory=list)


def needs_network(job: JobRecord) -> bool:
    """A job keeps its network from its plan until the last of its workers is surely gone."""
    return job.state in JOB_PLACED or (job.state is not JobState.QUEUED and not job.released)


def involved_nodes(job: JobRecord) -> set[str]:
    """Every node on which the job's reservations depend: where its tasks are, and what its flows cross, but for what
    stands for another region's gateway."""
    nodes = {allocation.node for allocation in job.allocations}
    for flow in job.reserved:
        nodes.update(flow.path)
    return nodes - borders_of(job)


def borders_of(job: JobRecord) -> set[str]:
    """The nodes that stand for other regions' gateways, where the job's flows cross into these."""
    return {flow.border for flow in job.flows if flow.border is not None}


def coming_nodes(job: JobRecord) -> set[str]:
    """Every node on which the destination of a task that moves depends, until the task is there; empty where none
    does."""
    if job.moving is None or job.moving.beside is None or not job.moving.coming:
        return set()
    return {job.moving.beside.node}.union(*(flow.path for flow in job.moving.reserved))


def ends_of(job: JobRecord) -> set[str]:
    """The nodes where the job has tasks, data or checkpoints, or is to have a task."""
    nodes = {allocation.node for allocation in job.allocations}
    if coming_nodes(job) and job.moving is not None and job.moving.beside is not None:
        nodes.add(job.moving.beside.node)
    nodes |= {node for pair in _transfers_of(job) for node in pair} | borders_of(job)
    return nodes | {node for flow in job.flows if (node := flow.data_node) is not None}


def _transfers_of(job: JobRecord) -> list[tuple[str, str]]:
    """Between which nodes checkpoints travel, if all of them are there."""
    nodes = {allocation.node for allocation in job.allocations}
    nodes.update(node for each in job.checkpoints.stored for node in each.nodes)
    return transfers(job, nodes | {node for node in (job.checkpoint_node, job.checkpoints.former) if node})


def surely_asks_the_same(job: JobRecord, before: NetworkContext, now: NetworkContext) -> bool:
    """Whether what this job asks of the network is the same in both contexts. May say no where it is."""
    coming = [] if job.moving is None else job.moving.reserved
    back = {hop for flow in [*job.reserved, *coming] for hop in pairwise(reversed(flow.path))}
    return (
        before.addressing is now.addressing
        and before.wired is now.wired
        and now.routes.same_ways(before.routes, ends_of(job))
        and all(before.routes.linked(*hop) == now.routes.linked(*hop) for hop in back)
    )


def asks_alike(before: JobRecord, now: JobRecord) -> bool:
    """Whether two records of one job ask the same of the network: most changes are of its workers' states."""
    return (
        before.key == now.key
        and needs_network(before) == needs_network(now)
        and _places(before) == _places(now)
        and before.reserved == now.reserved
        and before.flows == now.flows
        and _coming(before) == _coming(now)
        and before.part == now.part
        and _transfers_of(before) == _transfers_of(now)
        and before.checkpoints.former == now.checkpoints.former
    )


def _places(job: JobRecord) -> list[tuple[str, str, str, str]]:
    return [(each.id, each.task, each.node, each.address) for each in job.allocations]


def _coming(job: JobRecord) -> Moving | None:
    return job.moving if coming_nodes(job) else None


def share_of(job: JobRecord, context: NetworkContext) -> dict[str, Parts]:
    """Node -> what the job asks of it; empty where it needs no network, or a node of it is unknown, or, of a part of a
    job that is split over regions, where its peers are in the others."""
    nodes = involved_nodes(job) | borders_of(job)
    if not (needs_network(job) and job.allocations and nodes <= context.nodes.keys()):
        return {}
    if job.part is not None and job.part.places is None:
        return {}
    parts = _JobNetwork(job, context).parts()
    if coming_nodes(job) and coming_nodes(job) <= context.nodes.keys():
        _add_coming(parts, job, context)
    return {node: part for node, part in parts.items() if context.nodes[node].region is None}


def _add_coming(parts: dict[str, Parts], job: JobRecord, context: NetworkContext) -> None:
    """What the destination of a task that moves takes, beside all that the job has: as if the task were there already,
    but for the others' ways to it."""
    moving = job.moving
    assert moving is not None
    new = moving.beside
    assert new is not None
    other = {(flow.src, flow.dst): flow for flow in moving.reserved}
    there = job.model_copy(
        update={
            "allocations": [new if each.task == moving.task else each for each in job.allocations],
            "reserved": [other.get((flow.src, flow.dst), flow) for flow in job.reserved],
            "moving": None,
        }
    )
    numbers, key = {flow.number for flow in moving.reserved}, {"job": job.moving_key}
    for node, part in _JobNetwork(there, context).parts().items():
        mine = parts[node]
        mine.endpoints += [each.model_copy(update=key) for each in part.endpoints if each.allocation == new.id]
        mine.policies += [each.model_copy(update=key) for each in part.policies if new.address in (each.src, each.dst)]
        mine.classes += [each.model_copy(update=key) for each in part.classes if each.number in numbers]
        mine.readers += [each.model_copy(update=key) for each in part.readers if each.address == new.address]
        if node in coming_nodes(job):
            mine.subnets += [each.model_copy(update=key) for each in part.subnets]


class _JobNetwork:
    """A job's network, worked out part by part."""

    def __init__(self, job: JobRecord, context: NetworkContext) -> None:
        self._job, self._context = job, context
        self._sources = {flow.src: node for flow in job.flows if (node := flow.data_node) is not None}
        places = {allocation.task: allocation.node for allocation in job.allocations}
        self._hosts = {allocation.task: allocation.address for allocation in job.allocations}
        if job.part is not None:
            self._hosts |= {place.task: str(place.address) for place in job.part.places or ()}
        self._far = {end: str(flow.border) for flow in job.flows if (end := flow.far_end(places)) is not None}
        self._addresses = self._hosts | {
            source: router_address(context.nodes[node].subnet) for source, node in self._sources.items()
        }
        self._ends = places | self._sources | self._far
        self._paths = _pair_paths(job, self._ends, context.routes)
        self._transfers = transfers(job, context.nodes)
        self._parts: dict[str, Parts] = defaultdict(Parts)

    def parts(self) -> dict[str, Parts]:
        self._add_endpoints()
        self._add_policies()
        elastic = {(flow.src, flow.dst) for flow in self._job.flows if flow.mode == "elastic"}
        for flow in self._job.reserved:
            if flow.rate:  # else it is best effort for now
                borrows = (flow.src, flow.dst) in elastic and flow.max > flow.rate
                self._add_classes(flow, flow.max if borrows else None)
        self._add_readers()
        self._add_checkpoint_readers()
        self._add_subnets()
        return self._parts

    def _add_endpoints(self) -> None:
        """Each worker reaches its peers, and the nodes whose data it reads; peers in other regions only those with
        whom it shares a flow."""
        reserved = {(flow.src, flow.dst) for flow in self._job.reserved}
        for allocation in self._job.allocations:
            peers = []
            for peer in self._job.allocations:
                path = self._paths.get((allocation.task, peer.task))
                if peer is not allocation and path:
                    peers.append(PeerRoute(address=peer.address, via=_first_hop(path)))
            for source in self._sources:
                path = self._paths.get((allocation.task, source))
                if (source, allocation.task) in reserved and path:
                    peers.append(PeerRoute(address=self._addresses[source], via=_first_hop(path)))
            for far in self._far:
                path = self._paths.get((allocation.task, far))
                if {(allocation.task, far), (far, allocation.task)} & reserved and path:
                    peers.append(PeerRoute(address=self._addresses[far], via=_first_hop(path)))
            self._parts[allocation.node].endpoints.append(
                Endpoint(
                    allocation=allocation.id,
                    job=self._job.key,
                    address=allocation.address,
                    hostname=allocation.task,
                    hosts=self._hosts,
                    peers=peers,
                )
            )

    def _add_policies(self) -> None:
        """Reserved flows and their answers keep to their paths."""
        pairs = {pair for flow in self._job.reserved for pair in ((flow.src, flow.dst), (flow.dst, flow.src))}
        for src, dst in sorted(pairs):
            path = self._paths.get((src, dst)) or []
            own_table = src not in self._sources  # a worker's first hop is in its own routing table; a node has none
            for at, via in list(pairwise(path))[own_table:]:
                route = PolicyRoute(job=self._job.key, src=self._addresses[src], dst=self._addresses[dst], via=via)
                self._parts[at].policies.append(route)

    def _add_classes(self, flow: FlowRecord, most: int | None) -> None:
        """A flow's classes on its path, and those of its answers. ``most``: bit/s up to which it may borrow."""
        source, target = self._addresses[flow.src], self._addresses[flow.dst]
        for at, via in pairwise(flow.path):
            self._parts[at].classes.append(
                FlowClass(
                    job=self._job.key,
                    number=flow.number,
                    kind="data",
                    via=via,
                    src=source,
                    dst=target,
                    rate=flow.rate,
                    ceil=most if (at, via) in self._context.wired else None,
                )
            )
        for at, via in pairwise(self._paths.get((flow.dst, flow.src)) or []):
            self._parts[at].classes.append(
                FlowClass(
                    job=self._job.key,
                    number=flow.number,
                    kind="return",
                    via=via,
                    src=target,
                    dst=source,
                    rate=return_rate(flow.rate),
                    ceil=return_rate(most) if most and (at, via) in self._context.wired else None,
                    # Whatever else is sent back would delay the acknowledgements, and so the flow. To a node nothing
                    # is sent but requests, which are larger and must get through as well.
                    small_only=flow.src not in self._sources,
                )
            )

    def _add_readers(self) -> None:
        for flow in self._job.flows:
            if flow.src in self._sources and flow.dst in self._addresses:
                reader = Reader(job=self._job.key, address=self._addresses[flow.dst], datasets=flow.datasets)
                self._parts[self._sources[flow.src]].readers.append(reader)

    def _add_checkpoint_readers(self) -> None:
        for source, reader in self._transfers:
            node = self._context.nodes[reader]
            address = router_address(node.subnet) if node.network == "tc" else node.host_address
            self._parts[source].checkpoint_readers.append(
                CheckpointReader(
                    job=self._job.key,
                    owner=self._job.id,
                    node=reader,
                    address=address,
                    key=node.public_key,
                    newest=source == self._job.checkpoints.former and reader == self._job.checkpoint_node,
                )
            )

    def _add_subnets(self) -> None:
        """Plain routes between all nodes where the job's tasks, data and checkpoints are, on every node on the way.
        Nodes that are crossed have a way to both ends, too: a packet that is too large for the next link must be
        answered."""
        holders = {node for pair in self._transfers for node in pair}
        ends, routes = {*self._ends.values()} | holders, self._context.routes
        crossed = {at for path in self._paths.values() for at in path} | ends
        wanted = {(at, dst, via) for dst in ends for at, via in routes.hops(crossed, dst).items()}
        for at, dst, via in sorted(wanted):
            if self._context.nodes[at].network == "tc" and (subnet := self._context.nodes[dst].subnet):
                self._parts[at].subnets.append(SubnetRoute(job=self._job.key, subnet=subnet, via=via))


def _first_hop(path: list[str]) -> str | None:
    return path[1] if len(path) > 1 else None


def _pair_paths(job: JobRecord, places: Mapping[str, str], routes: PlainRoutes) -> dict[tuple[str, str], list[str]]:
    """The path of every ordered pair of ends, whose nodes are ``places``: reserved flows as planned, their answers back
    along the same nodes where links allow, everything else by plain routes."""
    paths = {(flow.src, flow.dst): list(flow.path) for flow in job.reserved}
    for flow in job.reserved:
        back = list(reversed(flow.path))
        pair = (flow.dst, flow.src)
        if pair not in paths and all(routes.linked(a, b) for a, b in pairwise(back)):
            paths[pair] = back
    for src, one in places.items():
        for dst, other in places.items():
            if src != dst and (src, dst) not in paths:
                path = routes.path(one, other)
                if path is not None:
                    paths[(src, dst)] = path
    return paths
