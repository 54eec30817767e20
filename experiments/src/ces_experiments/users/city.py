"""Melbourne's centre with 125 sites of a mobile network and 816 places where somebody might be, and what is drawn
around them.

Positions are those of the EUA datasets (P. Lai, Q. He, M. Abdelrazek, F. Chen, J. Hosking, J. Grundy, Y. Yang, "Optimal
Edge User Allocation in Edge Computing with Variable Sized Vector Bin Packing", ICSOC 2018;
https://github.com/swinedge/eua-dataset, MIT licence): ``site-optus-melbCBD.csv`` and ``users-melbcbd-generated.csv``,
rounded to metres. Coverage of 100 to 150 m is as in that paper. All else is drawn or chosen, and said so beside it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from ces_common.access_nodes import Uncovered, access_node, distance_m
from ces_common.application import Location
from ces_common.messages.profiles import NodeProfile, Position
from ces_core.model.plan import Plan

MACHINES = ((0.6, 4.0, 8.0, 0.5), (0.3, 8.0, 16.0, 1.0), (0.1, 32.0, 64.0, 2.5))
"""Chosen: share of the sites, cores, GB, and how many times the reference core one core is."""
BUSY = 0.3, 0.8
"""Chosen: the share of CPU and memory that others use already, drawn evenly."""
HUBS = 6
"""Chosen: sites that the others' wires lead to, each to the nearest, and that have wires to each other: the backhaul of
a mobile network. The first is the one in the middle, each further one is the farthest from those before."""
WIRE_MS, WIRE_MBIT, HUB_MBIT = (0.5, 3.0), 200.0, 2000.0
"""Chosen: a wire's delay one way, drawn evenly, and its bandwidth, to a hub and between hubs: switches and radio,
not the few hundred metres."""
ACCESS_MS, WORK_MS, RATE, DEADLINE_MS = (1.0, 5.0), (10.0, 40.0), (5.0, 15.0), (40.0, 90.0)
"""Chosen, drawn evenly: a user's access one way, a picture's work on the reference core, pictures a second, and by when
each wants its answer."""


@dataclass(frozen=True)
class Site:
    name: str
    profile: NodeProfile


@dataclass(frozen=True)
class User:
    """Who comes, to which site; times in ms, ``rate`` a second."""

    site: str
    position: Position
    access_ms: float
    work_ms: float
    rate: float
    deadline_ms: float


@dataclass(frozen=True)
class City:
    """``nodes`` and ``links`` as an instance has them; ``delays``: sites with a weight ``delay_ms`` on each wire."""

    sites: tuple[Site, ...]
    nodes: tuple[Mapping[str, Any], ...]
    links: tuple[Mapping[str, Any], ...]
    users: tuple[User, ...]
    delays: nx.Graph = field(compare=False)


@dataclass
class Room:
    """What is used of the nodes (cores and GB) and links (Mbit/s)."""

    nodes: dict[str, list[float]]
    links: dict[tuple[str, str], float]

    @staticmethod
    def of(city: City) -> Room:
        used = {node["name"]: [node["cpu_used"], node["memory_used"]] for node in city.nodes}
        return Room(used, dict.fromkeys(((link["src"], link["dst"]) for link in city.links), 0.0))

    def take(self, plan: Plan, tasks: list[dict[str, Any]]) -> None:
        for task in tasks:
            used = self.nodes[plan.assignments[task["name"]]]
            used[0] += task["cpu"]
            used[1] += task["memory"]
        for flow in plan.flows:
            for hop in zip(flow.path, flow.path[1:], strict=False):
                self.links[hop] += flow.bandwidth


@cache
def _places() -> dict[str, list[Position]]:
    found: dict[str, list[Position]] = {"site": [], "user": []}
    with Path(__file__).with_name("melbourne.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            found[row["what"]].append(Position(lat=float(row["north"]), lon=float(row["east"])))
    return found


def city(seed: int, users: int) -> City:
    """One draw of machines, wires, and of so many users in the order in which they come; those whom no site covers are
    left out before it."""
    rng = np.random.default_rng([seed, 125])
    sites = tuple(
        Site(f"site{i}", NodeProfile(position=place, coverage=float(rng.uniform(100, 150))))
        for i, place in enumerate(_places()["site"])
    )
    wires = _wires(sites, rng)
    links = tuple(
        {"src": src, "dst": dst, **told} for a, b, told in wires.edges(data=True) for src, dst in ((a, b), (b, a))
    )
    covered = list(_covered(sites))
    chosen = rng.choice(len(covered), min(users, len(covered)), replace=False).tolist()
    visitors = tuple(User(*covered[i], *(float(rng.uniform(*span)) for span in DRAWN)) for i in chosen)
    return City(sites, tuple(_node(site, rng) for site in sites), links, visitors, wires)


DRAWN = ACCESS_MS, WORK_MS, RATE, DEADLINE_MS


def _node(site: Site, rng: np.random.Generator) -> dict[str, Any]:
    _, cores, memory, speed = MACHINES[rng.choice(len(MACHINES), p=[share for share, *_ in MACHINES])]
    busy = rng.uniform(*BUSY, 2)
    used = {"cpu_used": cores * busy[0], "memory_used": memory * busy[1]}
    return {"name": site.name, "cpu": cores, "memory": memory, **used, "speed": {"pictures": speed}}


def _wires(sites: tuple[Site, ...], rng: np.random.Generator) -> nx.Graph:
    places = {site.name: site.profile.position for site in sites if site.profile.position is not None}
    metres = {a: {b: distance_m(one, other) for b, other in places.items()} for a, one in places.items()}
    hubs = [min(metres, key=lambda name: sum(metres[name].values()))]
    while len(hubs) < HUBS:
        hubs.append(max(metres, key=lambda name: min(metres[name][hub] for hub in hubs)))
    wires = nx.Graph()
    wires.add_edges_from(combinations(hubs, 2), bandwidth=HUB_MBIT)
    for name in places:
        if name not in hubs:
            wires.add_edge(name, min(hubs, key=lambda hub: metres[name][hub]), bandwidth=WIRE_MBIT)
    for _, _, told in wires.edges(data=True):
        told["delay_ms"] = float(rng.uniform(*WIRE_MS))
    return wires


def _covered(sites: tuple[Site, ...]) -> Iterator[tuple[str, Position]]:
    """The site that each user's requests come to, by the service's own rule."""
    for place in _places()["user"]:
        try:
            yield access_node(Location(lat=place.lat, lon=place.lon), sites), place
        except Uncovered:
            continue
