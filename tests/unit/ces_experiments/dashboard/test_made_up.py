"""The cluster that the dashboard's benchmark makes up."""

from __future__ import annotations

from itertools import islice

from ces_experiments.control_plane.fleet.load import sites_of
from ces_experiments.control_plane.load import node_names
from ces_experiments.dashboard.made_up import Asked, simulated, topology_of


def test_it_has_as_many_links_as_asked_for_and_no_wire_twice() -> None:
    names = node_names(1000)
    topology = topology_of(names, 2500, seed=1)
    wires = [frozenset((link.src, link.dst)) for link in topology.links]
    assert len(wires) == len(set(wires)) == 2500
    assert set().union(*wires) == set(names)
    assert topology == topology_of(names, 2500, seed=1) != topology_of(names, 2500, seed=2)


def test_nodes_know_their_site_and_measure_something_else_each_time() -> None:
    nodes, _ = simulated(Asked(nodes=120, wires=200))
    sites = sites_of([node.name for node in nodes])
    assert len({node.labels["site"] for node in nodes}) == len(sites) == 3
    assert nodes[0].beats_with is not None
    first, second, third = islice(nodes[0].beats_with, 3)
    assert len({first.cpu, second.cpu, third.cpu}) == 3
    assert {link.peer for link in first.links} == set(nodes[0].peers)
    assert all(0 <= beat.cpu <= 8000 for beat in (first, second, third))
