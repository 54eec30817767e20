"""The fleet that the benchmark simulates: its sites, its links and what befalls it. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ces_common.messages.api import TopologyFile, TopologyLink
from ces_experiments.control_plane.load import LINK, chord_topology

SITE = 50  # nodes
UPLINK = 10 * LINK  # bit/s, between gateways


@dataclass(frozen=True)
class Fleet:
    """``interval_s``: between a node's heartbeats. ``run_s``: how long workers run. ``burst_s``, ``stall_s``: when all
    jobs are submitted at once, and when the manager is stopped for ``stalled_s``; counted from the first moment at
    which every node holds its lease. ``flap_s``: how often a link goes down, for a third of that time; 0: none does."""

    nodes: int = 1000
    interval_s: float = 2.0
    lease_s: float = 30.0
    lasts_s: float = 120.0
    jobs: int = 200
    tasks: int = 3
    run_s: float = 10.0
    flap_s: float = 30.0
    stalled_s: float = 20.0
    seed: int = 1

    @property
    def down_s(self) -> float:
        return self.flap_s / 3

    @property
    def burst_s(self) -> float:
        return self.lasts_s / 6

    @property
    def stall_s(self) -> float:
        return self.lasts_s / 2


def sites_of(nodes: Sequence[str]) -> list[tuple[str, ...]]:
    """Sites of fifty nodes; the first node of each is its gateway."""
    return [tuple(nodes[start : start + SITE]) for start in range(0, len(nodes), SITE)]


def site_topology(nodes: Sequence[str]) -> TopologyFile:
    """Each node is wired to its site's gateway, and the gateways form a circle with chords."""
    sites = sites_of(nodes)
    uplinks = chord_topology([gateway for gateway, *_ in sites], UPLINK).links
    wires = [TopologyLink(src=gateway, dst=node, bandwidth=LINK) for gateway, *others in sites for node in others]
    return TopologyFile(links=[*uplinks, *wires])


def peers_of(topology: TopologyFile) -> dict[str, list[str]]:
    """Where each node's links lead."""
    peers: dict[str, list[str]] = {}
    for link in topology.links:
        peers.setdefault(link.src, []).append(link.dst)
        peers.setdefault(link.dst, []).append(link.src)
    return peers


def flapping(nodes: Sequence[str], topology: TopologyFile, seed: int) -> Iterator[tuple[str, str]]:
    """The wires that go down, one after the other: mostly between sites, where most traffic passes."""
    gateways, chance = {gateway for gateway, *_ in sites_of(nodes)}, random.Random(seed)
    uplinks = [(link.src, link.dst) for link in topology.links if {link.src, link.dst} <= gateways]
    wires = [(link.src, link.dst) for link in topology.links if not {link.src, link.dst} <= gateways]
    while True:
        yield chance.choice(uplinks if uplinks and chance.random() < 0.75 else wires)
