"""Topologies are remembered by value, and one that follows another keeps the hop counts that still hold."""

from __future__ import annotations

from itertools import count

import networkx as nx
from core_instances import topology_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.model.topology import Topology
from ces_core.network.cache import network_of, paths_of
from ces_core.network.graph import Network
from ces_core.network.path_table import PathTable

Edges = list[tuple[int, int]]

FRESH = count()


def _names(nodes: int) -> list[str]:
    """Names that no other test has used: what topologies learn from each other hangs on the names."""
    prefix = next(FRESH)
    return [f"{prefix}-{i}" for i in range(nodes)]


def _topology(names: list[str], edges: Edges) -> Topology:
    return topology_of(names, [(names[a], names[b], None) for a, b in edges])


def _warm(topology: Topology) -> None:
    for node in range(len(topology.nodes)):
        paths_of(topology).hops_to(node)
        paths_of(topology).hops_from(node)


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[Edges]]:
    """Nodes, and what is linked at first, then, and after that."""
    nodes = draw(st.integers(2, 9))
    pairs = [(a, b) for a in range(nodes) for b in range(nodes) if a != b]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=30))
    history = [edges]
    for _ in range(draw(st.integers(1, 3))):
        gone = draw(st.lists(st.sampled_from(pairs), max_size=4))
        off = draw(st.sampled_from([-1, -1, *range(nodes)]))
        new = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=3))
        edges = [pair for pair in edges if pair not in gone and off not in pair]
        edges = edges + [pair for pair in new if pair not in edges]
        history.append(edges)
    return nodes, history


@settings(deadline=None, max_examples=200)
@given(story=histories())
def test_learning_from_the_past_is_working_it_out_anew(story: tuple[int, list[Edges]]) -> None:
    nodes, history = story
    names = _names(nodes)
    for edges in history:
        topology = _topology(names, edges)
        fresh = PathTable(Network(nodes, [a for a, _ in edges], [b for _, b in edges], [-1] * len(edges)))
        for a in range(nodes):
            assert paths_of(topology).hops_to(a).tolist() == fresh.hops_to(a).tolist()
            assert paths_of(topology).hops_from(a).tolist() == fresh.hops_from(a).tolist()
            for b in range(nodes):
                assert paths_of(topology).between(a, b) == fresh.between(a, b)


def test_hop_counts_that_a_change_leaves_alone_are_the_same_objects() -> None:
    names = _names(6)
    ring = [(a, (a + step) % 6) for a in range(6) for step in (1, -1)]
    before = _topology(names, ring)
    _warm(before)
    after = _topology(names, [link for link in ring if link != (0, 1)])
    kept = [n for n in range(6) if paths_of(after).hops_to(n) is paths_of(before).hops_to(n)]
    # Nodes 1 and 2 are reached otherwise now, and 3 as quickly the other way round.
    assert kept == [0, 3, 4, 5]
    assert paths_of(after).hops_to(1)[0] == 5


def test_around_a_node_that_falls_silent_hop_counts_are_mended() -> None:
    names = _names(100)
    grid = list(nx.convert_node_labels_to_integers(nx.grid_2d_graph(10, 10)).to_directed().edges)
    before = _topology(names, grid)
    _warm(before)
    after = _topology(names, [link for link in grid if 55 not in link])
    mended = dict(network_of(after).hops_to.kept())
    assert len(mended) == 100  # none is the same without node 55, and none had to be worked out anew
    assert all(row[55] == (0 if n == 55 else -1) for n, row in mended.items())


def test_many_changes_at_once_are_worked_out_anew() -> None:
    names = _names(40)
    full = [(a, b) for a in range(40) for b in range(40) if a != b]
    before = _topology(names, full)
    _warm(before)
    line = [(a, a + 1) for a in range(39)]
    after = _topology(names, line)
    assert paths_of(after).hops_to(39).tolist() == list(range(39, -1, -1))


def test_the_same_structure_is_the_same_object() -> None:
    names = _names(3)
    one = topology_of(names, [(names[0], names[1], "air")], ["air"])
    assert topology_of(list(names), [(names[0], names[1], "air")], ("air",)) is one
    assert topology_of(names, [(names[0], names[1], None)], ["air"]) is not one
    assert topology_of(names, [(names[1], names[0], "air")], ["air"]) is not one
    assert topology_of(names[::-1], [(names[0], names[1], "air")], ["air"]) is not one


def test_tables_of_a_topology_are_kept_per_choice() -> None:
    topology = _topology(_names(2), [(0, 1)])
    assert paths_of(topology, None) is paths_of(topology)
    assert paths_of(topology, 2) is paths_of(topology, 2) is not paths_of(topology, 3)
