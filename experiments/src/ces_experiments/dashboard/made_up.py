"""The cluster that is looked at: sites of fifty nodes with wires within them and between them. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ces_common.messages.api import TopologyFile, TopologyLink
from ces_common.messages.reports import Heartbeat, LinkUsage
from ces_experiments.control_plane.fleet.load import peers_of, site_topology, sites_of
from ces_experiments.control_plane.load import LINK, node_names
from ces_experiments.control_plane.simulated_agents import NodeShape, SimulatedNode


@dataclass(frozen=True)
class Asked:
    """``wires``: each two links, one for each direction. ``interval_s``: between a node's heartbeats. ``visits``: first
    visits, and pictures of the map of each kind. ``minutes``: for which the heap is watched. ``rounds``: of ``round_s``
    with viewers, and as many without."""

    nodes: int = 1000
    wires: int = 2500
    interval_s: float = 10.0
    visits: int = 9
    minutes: float = 15.0
    viewers: int = 10
    rounds: int = 5
    round_s: float = 30.0
    seed: int = 1


def topology_of(names: Sequence[str], wires: int, seed: int) -> TopologyFile:
    """Each node is wired to its site's gateway, gateways form a circle with chords, and further wires join neighbours
    within sites until there are ``wires``. Small clusters may have room for fewer."""
    links = list(site_topology(names).links)
    taken, chance = {frozenset((link.src, link.dst)) for link in links}, random.Random(seed)
    free = [
        (one, other)
        for site in sites_of(names)
        for index, one in enumerate(site)
        for other in site[index + 1 : index + 8]
        if frozenset((one, other)) not in taken
    ]
    more = chance.sample(free, min(len(free), max(0, wires - len(links))))
    return TopologyFile(links=[*links, *(TopologyLink(src=one, dst=other, bandwidth=LINK) for one, other in more)])


def simulated(asked: Asked) -> tuple[list[SimulatedNode], TopologyFile]:
    """Agents whose measurements change with every heartbeat, as real ones' do."""
    names = node_names(asked.nodes)
    topology = topology_of(names, asked.wires, asked.seed)
    peers = peers_of(topology)
    site = {name: f"site-{number:02}" for number, names_there in enumerate(sites_of(names)) for name in names_there}
    nodes = [
        SimulatedNode(
            name,
            lambda _: 60.0,
            interval_s=asked.interval_s,
            peers=peers[name],
            labels={"site": site[name]},
            beats_with=_measurements(name, peers[name], asked.seed),
        )
        for name in names
    ]
    return nodes, topology


def _measurements(name: str, peers: Sequence[str], seed: int) -> Iterator[Heartbeat]:
    """CPU, memory and what each link carries, drifting."""
    chance, shape = random.Random(f"{seed}/{name}"), NodeShape()
    load = chance.random()
    while True:
        load = min(1.0, max(0.0, load + chance.uniform(-0.05, 0.05)))
        carried = [load * LINK * chance.uniform(0.2, 0.4) for _ in peers]
        yield Heartbeat(
            node=name,
            boot=name,
            cpu=round(load * shape.cpu),
            memory=round(load * shape.memory),
            links=[LinkUsage(peer=peer, sent=rate, received=rate) for peer, rate in zip(peers, carried, strict=True)],
        )
