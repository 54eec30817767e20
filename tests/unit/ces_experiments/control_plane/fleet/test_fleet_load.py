"""The fleet that ``ces bench fleet`` simulates."""

from __future__ import annotations

from itertools import islice

import networkx as nx
import pytest

from ces_experiments.control_plane.fleet.load import SITE, flapping, peers_of, site_topology, sites_of
from ces_experiments.control_plane.load import node_names

MAX_BODY = 1024 * 1024  # bytes, of a request to the API


@pytest.mark.parametrize("count", [6, SITE, SITE + 1, 400])
def test_every_node_reaches_every_other(count: int) -> None:
    names = node_names(count)
    wires = nx.Graph([(link.src, link.dst) for link in site_topology(names).links])
    assert set(wires) == set(names)
    assert nx.is_connected(wires)


def test_a_node_of_a_site_has_one_wire_to_its_gateway() -> None:
    names = node_names(3 * SITE)
    peers = peers_of(site_topology(names))
    for gateway, *others in sites_of(names):
        assert [peers[node] for node in others] == [[gateway]] * (SITE - 1)
        assert set(others) < set(peers[gateway])


def test_the_links_of_the_largest_fleet_fit_into_one_request() -> None:
    topology = site_topology(node_names(10_000))
    assert len(topology.model_dump_json(exclude_defaults=True)) < MAX_BODY


def test_the_same_seed_lets_the_same_wires_flap() -> None:
    names = node_names(200)
    topology = site_topology(names)
    wires = {(link.src, link.dst) for link in topology.links}
    first, again, other = (list(islice(flapping(names, topology, seed), 40)) for seed in (1, 1, 2))
    assert first == again != other
    assert set(first) <= wires
